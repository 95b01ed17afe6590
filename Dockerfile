# harness with its compilers, as an ordinary user. See docs/containers.md.
#     docker build -t harness .
#     docker run --rm --gpus all -v "$PWD:/work" harness doctor
FROM nvidia/cuda:13.0.1-devel-ubuntu24.04

RUN apt-get update \
    && apt-get install --yes --no-install-recommends python3 python3-dev python3-venv g++ ninja-build \
    && rm -rf /var/lib/apt/lists/*

WORKDIR /opt/harness
COPY pyproject.toml setup.py README.md LICENSE ./
COPY harness harness
COPY examples examples
COPY prompts prompts
COPY recordings recordings
COPY reference_models reference_models
COPY redteam_corpus redteam_corpus
RUN python3 -m venv /opt/venv && /opt/venv/bin/pip install --no-cache-dir '.[serve,ray]'

RUN useradd --create-home --uid 1001 harness \
    && install --directory --owner harness /work /home/harness/.cache /home/harness/.cache/harness
USER harness
ENV PATH=/opt/venv/bin:$PATH
WORKDIR /work
ENTRYPOINT ["harness"]
CMD ["--help"]
