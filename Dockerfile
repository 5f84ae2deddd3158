# An image in which the commands of README.md run: no GPU and no CUDA toolkit are needed.
#
#   docker build -t fa4gen .
#   docker run --rm fa4gen                               ./run demo
#   docker run --rm fa4gen ./run test                    the tests
#   docker run --rm -v "$PWD:/work" -w /work fa4gen fa4gen render my_kernel.yaml
#
# With NVIDIA's container toolkit, `docker run --gpus all` runs kernels on the GPU.
FROM python:3.13-slim

# For the tests of vendored folders; those that lack a compiler are skipped.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends cmake g++ git make pkg-config \
    && rm -rf /var/lib/apt/lists/*

RUN useradd --create-home fa4gen
COPY --chown=fa4gen . /home/fa4gen/checkout
USER fa4gen
WORKDIR /home/fa4gen/checkout

# Installs into .venv beside it, with what the tests need: both commands find it.
RUN ./run test --version
ENV PATH="/home/fa4gen/checkout/.venv/bin:$PATH"

CMD ["./run", "demo"]
