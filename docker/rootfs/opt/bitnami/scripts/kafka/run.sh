#!/bin/bash
# Becomes the broker.

set -o errexit
set -o nounset
set -o pipefail

. /opt/bitnami/scripts/liblog.sh
. /opt/bitnami/scripts/kafka-env.sh

info "** Starting Kafka **"
exec /opt/bitnami/kafka/bin/kafka-server-start.sh "$KAFKA_CONF_FILE" "$@"
