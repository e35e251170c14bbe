#!/bin/bash
# Makes the server.properties of variables or of a mounted file, and formats the node's directories.

set -o errexit
set -o nounset
set -o pipefail

. /opt/bitnami/scripts/liblog.sh
. /opt/bitnami/scripts/kafka-env.sh

barnabas image-properties bitnami \
  --mounted "$KAFKA_MOUNTED_CONF_DIR/server.properties" \
  --output "$KAFKA_CONF_FILE"

cluster="${KAFKA_CLUSTER_ID:-${KAFKA_KRAFT_CLUSTER_ID:-}}"
if [ -z "$cluster" ]; then
  exit 0 # a node that is alone formats itself, and chooses the id
fi

users=()
if grep -q "^sasl.enabled.mechanisms=.*SCRAM" "$KAFKA_CONF_FILE"; then
  IFS=',;' read -r -a names <<<"${KAFKA_CLIENT_USERS:-user}"
  IFS=',;' read -r -a passwords <<<"${KAFKA_CLIENT_PASSWORDS:-bitnami}"
  if grep -q "^sasl.mechanism.inter.broker.protocol=SCRAM" "$KAFKA_CONF_FILE"; then
    names+=("${KAFKA_INTER_BROKER_USER:-user}")
    passwords+=("${KAFKA_INTER_BROKER_PASSWORD:-bitnami}")
  fi
  for mechanism in SCRAM-SHA-256 SCRAM-SHA-512; do
    if grep -q "^sasl.enabled.mechanisms=.*$mechanism" "$KAFKA_CONF_FILE"; then
      for ((i = 0; i < ${#names[@]}; i++)); do
        users+=(--add-scram "$mechanism=[name=${names[i]},password=${passwords[i]}]")
      done
    fi
  done
fi
info "Formatting storage directories to add metadata..."
kafka-storage.sh format --ignore-formatted --cluster-id="$cluster" --config "$KAFKA_CONF_FILE" "${users[@]}"
