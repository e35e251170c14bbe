#!/bin/bash
# The entry point of Bitnami's image: prepares the node where its own command follows, and becomes the command.

set -o errexit
set -o nounset
set -o pipefail

. /opt/bitnami/scripts/liblog.sh
. /opt/bitnami/scripts/kafka-env.sh

if [[ "$*" = *"/opt/bitnami/scripts/kafka/run.sh"* || "$*" = *"/run.sh"* ]]; then
  info "** Starting Kafka setup **"
  /opt/bitnami/scripts/kafka/setup.sh
  info "** Kafka setup finished! **"
fi

echo ""
exec "$@"
