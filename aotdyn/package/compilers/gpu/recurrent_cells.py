"""The cells of recurrent layers that torch has for GPUs only, as operators that the CPU has: for
GPUs that are emulated. Formulas: the documentation of `torch.nn.LSTM` and `torch.nn.GRU`."""

import torch


def _sum(*terms: torch.Tensor | None) -> torch.Tensor:
    return sum(term for term in terms if term is not None)


def _lstm(input_gates, hidden_gates, cx, input_bias=None, hidden_bias=None):
    gates = _sum(input_gates, hidden_gates, input_bias, hidden_bias)
    i, f, g, o = gates.chunk(4, 1)
    i, f, g, o = i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()
    cy = f * cx + i * g
    return o * cy.tanh(), cy, torch.cat([i, f, g, o], 1)


def _lstm_backward(grad_hy, grad_cy, cx, cy, workspace, has_bias):
    i, f, g, o = workspace.chunk(4, 1)
    t = cy.tanh()
    into_o = torch.zeros_like(cy) if grad_hy is None else grad_hy * t
    from_hy = None if grad_hy is None else grad_hy * o * (1 - t * t)
    into_c = _sum(torch.zeros_like(cy), grad_cy, from_hy)
    grads = torch.cat(
        [
            into_c * g * i * (1 - i), into_c * cx * f * (1 - f),
            into_c * i * (1 - g * g), into_o * o * (1 - o),
        ],
        1,
    )  # fmt: skip
    return grads, into_c * f, grads.sum(0) if has_bias else None


def _gru(input_gates, hidden_gates, hx, input_bias=None, hidden_bias=None):
    ir, iz, i_n = _sum(input_gates, input_bias).chunk(3, 1)
    hr, hz, hn = _sum(hidden_gates, hidden_bias).chunk(3, 1)
    r, z = (ir + hr).sigmoid(), (iz + hz).sigmoid()
    n = (i_n + r * hn).tanh()
    return (hx - n) * z + n, torch.cat([r, z, n, hx, hn], 1)


def _gru_backward(grad_hy, workspace, has_bias):
    r, z, n, hx, hn = workspace.chunk(5, 1)
    into_n = grad_hy * (1 - z) * (1 - n * n)
    into_z = grad_hy * (hx - n) * z * (1 - z)
    into_r = into_n * hn * r * (1 - r)
    of_input = torch.cat([into_r, into_z, into_n], 1)
    of_hidden = torch.cat([into_r, into_z, into_n * r], 1)
    biases = (of_input.sum(0), of_hidden.sum(0)) if has_bias else (None, None)
    return of_input, of_hidden, grad_hy * z, *biases


def cells() -> torch.library.Library:
    """The operators of the device, for as long as the result lives."""
    library = torch.library.Library("aten", "IMPL", "CUDA")
    library.impl("_thnn_fused_lstm_cell", _lstm)
    library.impl("_thnn_fused_lstm_cell_backward_impl", _lstm_backward)
    library.impl("_thnn_fused_gru_cell", _gru)
    library.impl("_thnn_fused_gru_cell_backward", _gru_backward)
    return library
