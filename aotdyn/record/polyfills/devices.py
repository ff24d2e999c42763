"""`with torch.cuda.device(…)`: which device is the current one."""

import torch


def exchange(index):
    """Stands for what makes a device the current one and gives the one that was."""


def index_of(device):
    """Stands for what gives the number of a device, that of the current one for None."""


def make_device(self, device):
    self.idx = index_of(device)
    self.prev_idx = -1


def make_device_of(self, obj):
    self.idx = obj.get_device() if obj.is_cuda else -1
    self.prev_idx = -1


def enter_device(self):
    self.prev_idx = exchange(self.idx)


def leave_device(self, type, value, traceback):
    self.idx = exchange(self.prev_idx)
    return False


POLYFILLS = {
    torch.cuda.device.__init__: make_device,
    torch.cuda.device_of.__init__: make_device_of,
    torch.cuda.device.__enter__: enter_device,
    torch.cuda.device.__exit__: leave_device,
}
