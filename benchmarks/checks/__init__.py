"""What checks this library in simulations and by fault injection, and its source."""
