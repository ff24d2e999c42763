"""From a graph to the code that Inductor generates, as far as it is the same for all targets."""
