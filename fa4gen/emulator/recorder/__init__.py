"""A stand-in for the CUDA driver library, so that programs of others drive the emulator."""
