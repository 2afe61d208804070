# SPDX-License-Identifier: Apache-2.0
# The image of all programs: docker build -t aliquot:0.1.0 . (`make image` writes the same files without a daemon.)
FROM debian:12-slim AS build
WORKDIR /src
COPY scripts/packages.txt scripts/
RUN apt-get update && \
    sed -n 's/^build //p' scripts/packages.txt | xargs apt-get install -y --no-install-recommends && \
    rm -rf /var/lib/apt/lists/*
COPY . .
ARG SOURCE_DATE_EPOCH=0
RUN meson setup /build && \
    ninja -C /build aliquot aliquot-resize aliquot-run aliquot-sample aliquot-sim aliquot-smi kubectl-inspect-cgpu libaliquot.so \
        sim/libcuda.so.1 sim/libnvidia-ml.so.1 sim/nvidia-smi && \
    SOURCE_DATE_EPOCH=$SOURCE_DATE_EPOCH scripts/image.py --rootfs /build /image

# The programs, the libraries that they load, and these libraries' licences. No shell.
FROM scratch
COPY --from=build /image/ /
USER 65532:65532
ENTRYPOINT ["/usr/bin/aliquot"]
