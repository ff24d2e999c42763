"""What autograd knows of tensors, asked for and set in frames: leaves, gradients, data, versions;
inference mode."""

import copy

import pytest
import torch

import aotdyn
from tests.record.programs import Programs, assert_trains

program = Programs()
X = torch.arange(12.0).reshape(3, 4) + 1
W = X.clone().requires_grad_()
layer = torch.nn.Linear(4, 4)


@program((W,))
def p_leaf_of_zeros(x):
    y = torch.zeros(3, 4).requires_grad_()
    return (y * x).sum(), y


@program((W,))
def p_leaf_by_argument(x):
    y = torch.ones(3, 4, requires_grad=True)
    return (y * x).sum(), y, torch.tensor([1.0, 2.0], requires_grad=True)


@program((W,), (X,))
def p_detached_leaf(x):
    y = x.detach().requires_grad_()
    return y * 2, y, y.is_leaf, (y * 2).is_leaf


@program((W,))
def p_flag_is_set(x):
    y = x.detach().clone()
    y.requires_grad = True
    return y.sin(), y


@program((X.clone(),))
def p_argument_becomes_a_leaf(x):
    x.requires_grad_()
    return x * 2


@program((W,))
def p_argument_is_frozen(x):
    x.requires_grad_(False)
    return x * 2


@program((X.clone(),), (-X,), breaks=1)
def p_argument_becomes_a_leaf_after_a_check(x):
    if (x < 0).any():
        raise ValueError("negative")
    x.requires_grad_()
    return x * 2


@program((W,))
def p_no_leaf_is_frozen(x):
    y = x * 2
    try:
        y.requires_grad_(False)
    except RuntimeError as error:
        return type(error).__name__


@program((W,))
def p_numbers_have_no_gradient(x):
    try:
        return torch.arange(3).requires_grad_(x.requires_grad)
    except RuntimeError as error:
        return type(error).__name__


@program((W,), (X,))
def p_leaves(x):
    return x.is_leaf, (x * 2).is_leaf, (x * 2).detach().is_leaf, (x * 2).retains_grad


@program((W,), breaks=None)
def p_functions_of_gradients_over_a_break(x):
    y = x * 2
    held = y.grad_fn
    aotdyn.graph_break()
    return y * 2, held is y.grad_fn, y.grad_fn is held, y.grad_fn is not held, held is None


@program((W,), (X,))
def p_functions_of_gradients(x):
    y = x * 2
    if x.grad_fn is None:
        y = y + 1
    if y.grad_fn:
        y = y + 2
    return y, y.grad_fn is not None, y.grad_fn is y.grad_fn, None is y.grad_fn


@program((W,))
def p_kind_of_function(x):
    return type((x * 2).grad_fn).__name__


@program((W,), breaks=2)
def p_kind_of_function_of_what_came_in(x):
    y, z = x * 2, (x + 1)[1:]
    aotdyn.graph_break()
    kinds = [type(y.grad_fn).__name__, type(z.grad_fn).__name__]
    y.mul_(3)
    z.mul_(3)
    return kinds, type(y.grad_fn).__name__, type(z.grad_fn).__name__


@program((X,))
def p_versions(x):
    y = x * 2
    before = y._version
    y.add_(1).mul_(2)
    return before, y._version, y.detach()._version, y.data._version, y


@program((W,))
def p_gradient_is_dropped(x):
    x.grad = None
    return x * 2, x.grad is None


@program((W,))
def p_gradient_is_set(x):
    x.grad = torch.ones_like(x)
    x.grad = x.grad * 2
    return x.grad.sum()


@program((X,), (W,))
def p_parts_of_complex_tensors_are_set(x):
    made = torch.zeros(3, 4, dtype=torch.complex64)
    made.real = x
    made.imag = x * 2
    return torch.view_as_real(made), made.real


@program((X.clone(),), breaks=1)
def p_real_part_of_an_argument_is_set(x):
    x.real = x * 2
    try:
        x.imag = x
    except RuntimeError as error:
        return x, type(error).__name__


@program((W,), breaks=1)
def p_gradient_that_does_not_fit(x):
    try:
        x.grad = torch.ones(3)
    except RuntimeError as error:
        return type(error).__name__


@program((X,))
def p_step_of_descent(x):
    made = copy.deepcopy(layer)
    made.zero_grad()
    for parameter in made.parameters():
        parameter.grad = torch.ones_like(parameter)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter -= 0.1 * parameter.grad
    return made(x)


@program((X,))
def p_gradient_of_what_is_made(x):
    return (x * 2).grad is None, x.detach().requires_grad_().grad


@program((W,))
def p_detached_in_place(x):
    y = x * 2
    y.detach_()
    return y, y.is_leaf


@program((W,))
def p_leaf_keeps_its_gradient(x):
    x.retain_grad()
    return x * 2


@program((W,))
def p_data_has_its_own_version(x):
    x.data.add_(1)
    return x * 2


@program((X,))
def p_data_of_what_is_made(x):
    y = torch.zeros(2, dtype=torch.float64)
    y.data = x * 2
    return y, y.shape, y.dtype


@program((X, X + 1))
def p_data_of_arguments(x, y):
    x.data = x.data * 0.9 + y * 0.1
    return x.data.sum()


@program((X, X + 1, W), (X * 2, X, W))
def p_data_is_used(x, y, w):
    old = x.view(-1)
    with torch.no_grad():
        for _ in range(2):
            x.data = x.data * 0.9 + y * 0.1
            y.data = y + x
        old.mul_(2)
        x.add_(1)
        made = x * y + w, x.mul_(2) is x, x.dtype
    return x, made, x.requires_grad, x.is_leaf, old, y.data


@program((X, X + 1))
def p_data_is_shared(x, y):
    made = x * 2
    x.data = y.data = made
    with torch.no_grad():
        x.mul_(3)
        made.add_(1)
        return made, y + 0, made._version, x


@program((W, X), breaks=2)
def p_data_are_used_by_backward(w, x):
    x.data = x * 2
    y = w * x
    x.data = x.data * 3
    return torch.autograd.grad(y.sum(), w), x


@program((X, X + 1), breaks=1)
def p_shape_of_data_is_changed(x, y):
    with torch.no_grad():
        x.data = x * 2
        x.t_()
        return x @ y, x.shape


@program((W, X + 1), breaks=1)
def p_data_of_parameters_are_used(x, y):
    with torch.no_grad():
        x.data = y * 2
        return x * 2


@program((X, X + 1), breaks=1)
def p_other_data_are_used(x, y):
    x.data = y.double()
    return x * 2, x.dtype


@program((X, W))
def p_attributes_of_tensors(x, w):
    y = x * 2
    y.tag, x.tag = "made", [1]
    x.tag.append(2)
    del y.tag
    y.tag = "again"
    return y, y.tag, x.tag, hasattr(x, "other"), w


@program((X,), breaks=1)
def p_attributes_outlive_breaks(x):
    y = x * 2
    y.tag = "made"
    print("now")
    return y.tag, y


@program((X,))
def p_clips_gradients(x):
    made = copy.deepcopy(layer)
    made.weight.grad, made.bias.grad = torch.ones(4, 4) * 3, torch.ones(4)
    norm = torch.nn.utils.clip_grad_norm_(made.parameters(), 1.0)
    torch.nn.utils.clip_grad_value_(made.parameters(), 0.2)
    return norm, made.weight.grad, made.bias.grad


# -- inference mode ------------------------------------------------------------


@program((W,), (X,))
def p_inference(x):
    with torch.inference_mode():
        y = x * 2
    return y, y.is_inference(), x.is_inference(), torch.is_inference_mode_enabled()


@program((W,))
@torch.inference_mode()
def p_inference_as_decorator(x):
    return layer(x)


@program((W,))
@torch.inference_mode
def p_inference_as_bare_decorator(x):
    return layer(x), torch.is_grad_enabled()


@torch.inference_mode()
def features(x):
    return x.sin()


@program((W,))
def p_helper_in_inference(x):
    y = features(x)
    return y, y.clone() * x, (x * 2).requires_grad


@program((W,))
def p_inference_is_lifted(x):
    with torch.inference_mode():
        y = x + 1
        with torch.inference_mode(False):
            z = torch.ones(3) * 2
        inside = torch.is_inference_mode_enabled()
    return y, z, inside


@program((W,))
def p_no_inference(x):
    with torch.inference_mode(False):
        return x * 2


@program((X.clone(),))
def p_inference_changes_arguments(x):
    with torch.inference_mode():
        y = x.view(4, 3)
        x.add_(1)
        y.mul_(2)
    return y, x * 2


@program((W,), breaks=None)
def p_inference_tensors_are_not_saved(x):
    with torch.inference_mode():
        y = x + 1
    try:
        return x * y
    except RuntimeError as error:
        return type(error).__name__


@program((W,), breaks=3)
def p_break_in_inference(x):
    with torch.inference_mode():
        y = x + 1
        print(y.is_inference())
        y = y * 2
    return y, y.is_inference(), torch.is_inference_mode_enabled()


@program((X, torch.tensor([0, 7])), (X, torch.tensor([0, 1])))
def p_inference_raises(x, index):
    try:
        with torch.inference_mode():
            y = x[index]
    except IndexError:
        y = x
    return y, torch.is_inference_mode_enabled(), torch.is_grad_enabled()


test_agrees = program.test()


def leaf_made_here(x):
    y = torch.full((3, 4), 2.0, requires_grad=True)
    z = x.detach().requires_grad_()
    return y * x * z, y, z


def inference_beside(x):
    with torch.inference_mode():
        scale = x.abs().max()
    return x / scale.clone()


def data_changes(x):
    y = x * x
    y.data.add_(1)
    return y * 3


def parameter_of_argument(x):
    w = torch.nn.Parameter(x.detach() * 2)
    return w * x, w


def only_the_made_one(x):
    w = torch.nn.Parameter(x.detach())
    return w.exp(), w


@pytest.mark.parametrize(
    "function",
    [leaf_made_here, inference_beside, data_changes, parameter_of_argument, only_the_made_one],
)
def test_gradients(function, tmp_path):
    assert_trains(function, (W,), tmp_path)


def derivative(x):
    y = (x**3).sum()
    (gradient,) = torch.autograd.grad(y, x, create_graph=True)
    return y + (gradient**2).sum()


def one_step(x):
    with torch.enable_grad():
        v = x.detach().requires_grad_()
        gradient = torch.autograd.grad(v.sin().sum(), v)[0]
    return x - 0.1 * gradient


@pytest.mark.parametrize("function", [derivative, one_step])
def test_derivatives_break(function, tmp_path):
    assert_trains(function, (W,), tmp_path, fullgraph=False)
