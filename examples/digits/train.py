"""Trains the digit network: python train.py --epochs 5 --out weights.pt"""

import argparse
import json
from pathlib import Path

import torch
import torch.nn.functional as F
from digits import training_set
from model import DigitNet


def train(epochs: int, batch_size: int) -> tuple[DigitNet, list[float]]:
    """Returns the trained network and the loss of every step."""
    images, labels = training_set()
    model = DigitNet()
    compiled = torch.compile(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)

    losses = []
    for epoch in range(epochs):
        # The last batch of an epoch is smaller: 1437 = 22 * 64 + 29.
        for batch in torch.randperm(len(labels)).split(batch_size):
            optimizer.zero_grad()
            logits = compiled(images[batch], step=len(losses))
            loss = F.cross_entropy(logits, labels[batch])
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
        print(f"epoch {epoch + 1}: loss {losses[-1]:.4f}")
    return model, losses


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("weights.pt"), help="the weights")
    parser.add_argument("--losses", type=Path, help="write the loss of every step here, as JSON")
    args = parser.parse_args()

    torch.manual_seed(args.seed)
    model, losses = train(args.epochs, args.batch_size)
    torch.save(model.state_dict(), args.out)
    if args.losses:
        args.losses.write_text(json.dumps(losses))


if __name__ == "__main__":
    main()
