"""A small convolutional network for 8x8 images of handwritten digits."""

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    """3x3 convolution, batch normalization, ReLU."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel_size=3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(self.norm(self.conv(x)))


class DigitNet(nn.Module):
    """Images (N, 1, 8, 8) in, logits (N, 10) out; says now and then how the training goes."""

    def __init__(self, width: int = 16, dropout: float = 0.25, log_every: int = 10) -> None:
        super().__init__()
        self.log_every = log_every
        self.features = nn.Sequential(
            Block(1, width),
            Block(width, width),
            nn.MaxPool2d(2),
            Block(width, 2 * width),
            nn.MaxPool2d(2),
        )
        self.dropout = nn.Dropout(dropout)
        self.classifier = nn.Linear(2 * width * 2 * 2, 10)

    def forward(self, x: torch.Tensor, step: int = 0) -> torch.Tensor:
        features = self.features(x).flatten(1)
        if self.training and step % self.log_every == 0:
            mean = features.mean().item()
            print(f"step {step}: mean activation {mean:.4f}")
        return self.classifier(self.dropout(features))
