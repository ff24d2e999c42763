"""Covariances without weights of real numbers: torch looks at a number on the way."""


def covariance(observations, correction):
    """Of at most two dimensions, with more observations than the correction takes away."""
    rows = observations.view(1, -1) if observations.dim() < 2 else observations
    count = rows.size(1)
    rows = rows - (rows.sum(1) / count).unsqueeze(1)
    return (rows @ rows.t() / (count - correction)).squeeze()


def correlation(observations):
    """As above, with a correction of one."""
    found = covariance(observations, 1)
    if found.dim() == 0:
        return found / found
    deviations = found.diag().sqrt()
    return (found / deviations.view(-1, 1) / deviations.view(1, -1)).clip(-1, 1)
