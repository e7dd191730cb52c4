# captime with its extras: docker build -t captime . && docker run --rm -v "$PWD:/data" captime run scenario.toml
# Solvers are not part of it; derive an image from this one and add yours.
# Another base with Python 3.11 or newer and its venv module: docker build --build-arg BASE=...
ARG BASE=python:3.12-slim-bookworm

# hadolint ignore=DL3006
FROM ${BASE} AS build
WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src src
RUN python -m venv /opt/captime \
    && /opt/captime/bin/pip install --no-cache-dir --disable-pip-version-check -c constraints.txt '.[plot,parquet,yaml,dashboard,dask]'

# hadolint ignore=DL3006
FROM ${BASE}
COPY --from=build /opt/captime /opt/captime
ENV PATH=/opt/captime/bin:$PATH
RUN useradd --uid 1000 --create-home captime
USER 1000
WORKDIR /data
# `docker run --init` reaps processes that a target leaves behind.
ENTRYPOINT ["captime"]
CMD ["--help"]
