"""The modules of torch.nn, through their own Python: forward and backward as one graph, equal to
eager in results, gradients, buffers and random state."""

import copy

import pytest
import torch
from torch import nn

import aotdyn


def X(*shape):
    return torch.randn(*shape)


def I(high, *shape):  # noqa: E743
    return torch.randint(0, high, shape)


CASES = dict(
    Linear=(nn.Linear(4, 3), (X(2, 4),)),
    Bilinear=(nn.Bilinear(4, 5, 3), (X(2, 4), X(2, 5))),
    Identity=(nn.Identity(), (X(2, 4),)),
    Conv1d=(nn.Conv1d(3, 4, 3, padding=1), (X(2, 3, 8),)),
    Conv2d=(nn.Conv2d(3, 4, 3, padding_mode="circular", padding=1), (X(2, 3, 8, 8),)),
    Conv3d=(nn.Conv3d(3, 4, 3), (X(2, 3, 5, 5, 5),)),
    ConvT1=(nn.ConvTranspose1d(3, 4, 3), (X(2, 3, 8),)),
    ConvT2=(nn.ConvTranspose2d(3, 4, 3, stride=2), (X(2, 3, 8, 8),)),
    ConvT3=(nn.ConvTranspose3d(3, 4, 3), (X(2, 3, 5, 5, 5),)),
    BN1=(nn.BatchNorm1d(4), (X(3, 4),)),
    BN2=(nn.BatchNorm2d(3), (X(2, 3, 4, 4),)),
    BN3=(nn.BatchNorm3d(3), (X(2, 3, 4, 4, 4),)),
    BNmom=(nn.BatchNorm1d(4, momentum=None), (X(3, 4),)),
    SyncBN=(nn.SyncBatchNorm(3), (X(2, 3, 4, 4),)),
    IN1=(nn.InstanceNorm1d(3), (X(2, 3, 4),)),
    IN2=(nn.InstanceNorm2d(3, affine=True, track_running_stats=True), (X(2, 3, 4, 4),)),
    IN3=(nn.InstanceNorm3d(3), (X(2, 3, 4, 4, 4),)),
    LN=(nn.LayerNorm(4), (X(2, 4),)),
    RMS=(nn.RMSNorm(4), (X(2, 4),)),
    GN=(nn.GroupNorm(2, 4), (X(2, 4, 3),)),
    LRN=(nn.LocalResponseNorm(2), (X(2, 4, 3, 3),)),
    CMLRN=(nn.CrossMapLRN2d(2), (X(2, 4, 3, 3),)),
    Dropout=(nn.Dropout(0.5), (X(4, 4),)),
    Drop1=(nn.Dropout1d(), (X(2, 3, 4),)),
    Drop2=(nn.Dropout2d(), (X(2, 3, 4, 4),)),
    Drop3=(nn.Dropout3d(), (X(2, 3, 4, 4, 4),)),
    AlphaDrop=(nn.AlphaDropout(), (X(4, 4),)),
    FAD=(nn.FeatureAlphaDropout(), (X(2, 3, 4, 4),)),
    RNN=(nn.RNN(4, 5, 2), (X(3, 2, 4),)),
    LSTM=(nn.LSTM(4, 5, 2, bidirectional=True, batch_first=True), (X(2, 3, 4),)),
    LSTMproj=(nn.LSTM(4, 5, proj_size=3), (X(3, 2, 4),)),
    GRU=(nn.GRU(4, 5, dropout=0.1, num_layers=2), (X(3, 2, 4),)),
    RNNCell=(nn.RNNCell(4, 5), (X(2, 4),)),
    LSTMCell=(nn.LSTMCell(4, 5), (X(2, 4),)),
    GRUCell=(nn.GRUCell(4, 5), (X(2, 4),)),
    MHA=(nn.MultiheadAttention(8, 2, batch_first=True), (X(2, 3, 8),) * 3),
    MHAkv=(nn.MultiheadAttention(8, 2, kdim=4, vdim=6), (X(3, 2, 8), X(3, 2, 4), X(3, 2, 6))),
    TEL=(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), (X(2, 3, 8),)),
    TDL=(nn.TransformerDecoderLayer(8, 2, 16), (X(3, 2, 8), X(3, 2, 8))),
    TE=(
        nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2),
        (X(2, 3, 8),),
    ),
    TF=(nn.Transformer(8, 2, 1, 1, 16), (X(3, 2, 8), X(3, 2, 8))),
    Emb=(nn.Embedding(10, 4, padding_idx=0), (I(10, 2, 3),)),
    EmbMax=(nn.Embedding(10, 4, max_norm=1.0), (I(10, 2, 3),)),
    EB=(nn.EmbeddingBag(10, 4, mode="sum"), (I(10, 2, 3),)),
    EBoff=(nn.EmbeddingBag(10, 4), (I(10, 6), torch.tensor([0, 2]))),
    Seq=(nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2)), (X(2, 4),)),
    Flatten=(nn.Flatten(), (X(2, 3, 4),)),
    Unflatten=(nn.Unflatten(1, (2, 2)), (X(2, 4),)),
    Fold=(nn.Fold((4, 5), (2, 2)), (X(1, 12, 12),)),
    Unfold=(nn.Unfold((2, 2)), (X(1, 3, 4, 4),)),
    Up=(nn.Upsample(scale_factor=2), (X(1, 3, 4, 4),)),
    UpBi=(nn.Upsample(size=(6, 6), mode="bilinear"), (X(1, 3, 4, 4),)),
    UpN=(nn.UpsamplingNearest2d(scale_factor=2), (X(1, 3, 4, 4),)),
    PS=(nn.PixelShuffle(2), (X(1, 4, 3, 3),)),
    PU=(nn.PixelUnshuffle(2), (X(1, 1, 4, 4),)),
    CS=(nn.ChannelShuffle(2), (X(1, 4, 3, 3),)),
    Cos=(nn.CosineSimilarity(), (X(2, 4), X(2, 4))),
    PD=(nn.PairwiseDistance(), (X(2, 4), X(2, 4))),
)
for n in "MaxPool1d AvgPool1d".split():
    CASES[n] = (getattr(nn, n)(2), (X(2, 3, 8),))
for n in "MaxPool2d AvgPool2d".split():
    CASES[n] = (getattr(nn, n)(2), (X(2, 3, 8, 8),))
for n in "MaxPool3d AvgPool3d".split():
    CASES[n] = (getattr(nn, n)(2), (X(2, 3, 4, 4, 4),))
CASES["MPidx"] = (nn.MaxPool2d(2, return_indices=True), (X(2, 3, 8, 8),))
CASES["MUP"] = (nn.MaxUnpool2d(2), (X(1, 1, 2, 2), torch.tensor([[[[0, 2], [8, 10]]]])))
CASES["LP1"] = (nn.LPPool1d(2, 2), (X(2, 3, 8),))
CASES["LP2"] = (nn.LPPool2d(2, 2), (X(2, 3, 8, 8),))
CASES["LP3"] = (nn.LPPool3d(2, 2), (X(2, 3, 4, 4, 4),))
CASES["FMP2"] = (nn.FractionalMaxPool2d(2, output_size=3), (X(2, 3, 8, 8),))
CASES["FMP3"] = (nn.FractionalMaxPool3d(2, output_size=2), (X(2, 3, 6, 6, 6),))
for d, s in ((1, (2, 3, 8)), (2, (2, 3, 8, 8)), (3, (2, 3, 4, 4, 4))):
    CASES[f"AAP{d}"] = (getattr(nn, f"AdaptiveAvgPool{d}d")(2), (X(*s),))
    CASES[f"AMP{d}"] = (getattr(nn, f"AdaptiveMaxPool{d}d")(2), (X(*s),))
    for p in "Reflection Replication Zero Circular".split():
        CASES[f"{p}Pad{d}"] = (getattr(nn, f"{p}Pad{d}d")(1), (X(*s),))
    CASES[f"ConstPad{d}"] = (getattr(nn, f"ConstantPad{d}d")(1, 2.0), (X(*s),))
ACTIVATIONS = (
    "ReLU ReLU6 RReLU SELU CELU ELU GELU SiLU Mish Sigmoid LogSigmoid Tanh Hardsigmoid "
    "Hardswish Hardtanh Hardshrink Softshrink Tanhshrink Softplus Softsign LeakyReLU PReLU "
    "Softmin Softmax LogSoftmax GLU "
)
for n in ACTIVATIONS.split():
    kw = dict(dim=1) if n in ("Softmin", "Softmax", "LogSoftmax") else {}
    CASES[n] = (getattr(nn, n)(**kw), (X(2, 4),))
CASES["Threshold"] = (nn.Threshold(0.1, 20.0), (X(2, 4),))
CASES["Softmax2d"] = (nn.Softmax2d(), (X(2, 3, 4, 4),))
CASES["ReLUin"] = (nn.Sequential(nn.Linear(4, 4), nn.ReLU(inplace=True)), (X(2, 4),))
L = dict(
    L1Loss=(X(2, 4), X(2, 4)),
    MSELoss=(X(2, 4), X(2, 4)),
    SmoothL1Loss=(X(2, 4), X(2, 4)),
    HuberLoss=(X(2, 4), X(2, 4)),
    CrossEntropyLoss=(X(2, 4), I(4, 2)),
    NLLLoss=(X(2, 4), I(4, 2)),
    BCEWithLogitsLoss=(X(2, 4), torch.rand(2, 4)),
    KLDivLoss=(X(2, 4), torch.rand(2, 4)),
    PoissonNLLLoss=(X(2, 4), X(2, 4)),
    GaussianNLLLoss=(X(2, 4), X(2, 4), torch.rand(2, 4) + 0.1),
    MultiLabelMarginLoss=(X(1, 4), torch.tensor([[3, 0, -1, 1]])),
    MultiLabelSoftMarginLoss=(X(2, 4), I(2, 2, 4) * 1.0),
    MultiMarginLoss=(X(2, 4), I(4, 2)),
    MarginRankingLoss=(X(4), X(4), I(2, 4) * 2.0 - 1),
    HingeEmbeddingLoss=(X(4), I(2, 4) * 2.0 - 1),
    CosineEmbeddingLoss=(X(2, 4), X(2, 4), I(2, 2) * 2.0 - 1),
    TripletMarginLoss=(X(2, 4), X(2, 4), X(2, 4)),
    TripletMarginWithDistanceLoss=(X(2, 4), X(2, 4), X(2, 4)),
    CTCLoss=(X(5, 2, 4).log_softmax(2), I(3, 2, 3) + 1, torch.tensor([5, 5]), torch.tensor([2, 3])),
)
for n, a in L.items():
    CASES[n] = (getattr(nn, n)(), a)
CASES["BCELoss"] = (nn.BCELoss(), (torch.rand(2, 4), torch.rand(2, 4)))
CASES["NLLLoss2d"] = (nn.NLLLoss2d(), (X(2, 4, 3, 3), I(4, 2, 3, 3)))

# What differs between training and evaluation.
BOTH = {"BN1", "BN2", "SyncBN", "IN2", "Dropout", "RReLU", "GRU", "MHA", "TEL", "TE", "TF"}
# A number that is only known at run time is needed in Python.
BREAKS = {"BNmom", "CMLRN", "GaussianNLLLoss", "CTCLoss"}


def run(call, module, args):
    torch.manual_seed(3)
    args = [a.clone().requires_grad_() if a.is_floating_point() else a.clone() for a in args]
    module.zero_grad()
    results = list(tensors(call(*args)))
    total = sum(t.sum() for t in results if t.requires_grad)
    if isinstance(total, torch.Tensor):
        total.backward()
    gradients = [a.grad for a in (*args, *module.parameters())]
    return [*results, *gradients, *module.buffers(), torch.get_rng_state()]


def tensors(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for part in value:
            yield from tensors(part)


def equal(a, b):
    if a is None or b is None:
        return a is b
    return a.dtype == b.dtype and torch.equal(a.nan_to_num(), b.nan_to_num())


ROWS = [(name, True) for name in CASES] + [(name, False) for name in sorted(BOTH)]


@pytest.mark.parametrize("name,training", ROWS)
def test_module(name, training):
    module, args = CASES[name]
    eager, traced = (copy.deepcopy(module).train(training) for _ in range(2))
    expected = run(eager, eager, args)
    compiled = aotdyn.compile(traced, backend="eager", fullgraph=name not in BREAKS)
    actual = run(compiled, traced, args)
    assert len(expected) == len(actual)
    assert all(map(equal, expected, actual))


def test_recurrent_layers_can_be_packaged(agree):
    """They reach their kernels through `torch._VF`, a module of a class of its own."""

    def fn(layer, x):
        return layer(x)

    found = agree(fn, (nn.LSTM(3, 4), torch.ones(5, 2, 3)), breaks=0)
    assert not found.obstacles
    assert not [variant.obstacles for variant in found.variants if variant.obstacles]


def strided(layer, x):
    x = x * 2  # the layer asks weak references, to what it holds
    result, state = layer(x)
    return result, result.stride(), state, state.stride()


@pytest.mark.parametrize("both", [False, True])
@pytest.mark.parametrize("kind", [nn.GRU, nn.RNN])
def test_recurrent_layers_of_any_length(agree, kind, both):
    """How many steps there are is a size like any other."""
    layer = kind(3, 4, 2, batch_first=both, bidirectional=both)
    calls = [(layer, torch.ones((2, n, 3) if both else (n, 2, 3))) for n in (3, 4, 6)]
    agree(strided, *calls, breaks=0, variants=2)


def unpacked(packed):
    data, sizes, *_ = packed
    return data * 2, sizes, packed.data + 1, packed.sorted_indices, packed.to(torch.float64)


def test_packed_sequences(agree):
    rows = [torch.arange(n * 2.0).reshape(n, 2) for n in (3, 2)]
    agree(unpacked, (nn.utils.rnn.pack_sequence(rows),), breaks=0)
