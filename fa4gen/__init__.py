"""Generator of specialised CUDA kernels: config -> plan -> files -> cubin -> proof."""

__version__ = "0.1.0"
