"""Random numbers: the kinds of docs/random.md as kernels."""

from corefw_numpy import philox


def kernels(xp):
    """Ops that compute."""
    return {}


def data_movement(xp):
    """Ops that create elements of the dtype they are given; half types are rounded as the specification says."""

    def filled(kind):
        def kernel(size, seed, offset, *arguments):
            *parameters, dtype = arguments
            return kind(xp, size, dtype, seed, offset, *parameters)

        return kernel

    def bernoulli_at(p, size, seed, offset, dtype):
        return philox.bernoulli(xp, size, dtype, seed, offset, p)

    def permutation_at(n, seed, offset, dtype):
        return philox.permutation(xp, n, dtype, seed, offset)

    def multinomial_at(input, num_samples, replacement, seed, offset):
        return philox.multinomial(xp, input, num_samples, replacement, seed, offset)

    return {
        "bernoulli_at": bernoulli_at,
        "cauchy_at": filled(philox.cauchy),
        "exponential_at": filled(philox.exponential),
        "geometric_at": filled(philox.geometric),
        "integers_at": filled(philox.integers),
        "log_normal_at": filled(philox.log_normal),
        "multinomial_at": multinomial_at,
        "normal_at": filled(philox.normal),
        "permutation_at": permutation_at,
        "uniform_at": filled(philox.uniform),
    }
