"""Classifies the held-out digits with trained weights: python serve.py --weights weights.pt"""

import argparse
import json
from pathlib import Path

import torch
from digits import held_out_set
from model import DigitNet


def classify(model: torch.nn.Module, images: torch.Tensor, batch_size: int) -> torch.Tensor:
    """Logits (N, 10) of images (N, 1, 8, 8)."""
    with torch.no_grad():
        # The last batch is smaller: 360 = 5 * 64 + 40.
        return torch.cat([model(batch) for batch in images.split(batch_size)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weights", type=Path, default=Path("weights.pt"))
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--predictions", type=Path, help="write every image's logits here, as JSON")
    args = parser.parse_args()

    model = DigitNet()
    model.load_state_dict(torch.load(args.weights, weights_only=True))
    model.eval()

    images, labels = held_out_set()
    logits = classify(torch.compile(model), images, args.batch_size)
    accuracy = (logits.argmax(1) == labels).float().mean().item()
    print(f"accuracy on {len(labels)} held-out digits: {accuracy:.1%}")
    if args.predictions:
        args.predictions.write_text(json.dumps(logits.tolist()))


if __name__ == "__main__":
    main()
