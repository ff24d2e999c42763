"""scikit-learn's 1,797 handwritten digits, as tensors: 1,437 to train on, 360 held out."""

import torch
from sklearn.datasets import load_digits

HELD_OUT = 360


def load() -> tuple[torch.Tensor, torch.Tensor]:
    """Images (1797, 1, 8, 8) from 0 to 1 and labels (1797,), in a fixed random order."""
    images, labels = load_digits(return_X_y=True)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    images = torch.tensor(images, dtype=torch.float32).view(-1, 1, 8, 8) / 16
    return images[order], torch.tensor(labels)[order]


def training_set() -> tuple[torch.Tensor, torch.Tensor]:
    images, labels = load()
    return images[HELD_OUT:], labels[HELD_OUT:]


def held_out_set() -> tuple[torch.Tensor, torch.Tensor]:
    images, labels = load()
    return images[:HELD_OUT], labels[:HELD_OUT]
