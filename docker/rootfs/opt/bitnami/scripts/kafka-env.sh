# Sourced by the scripts: where things are, and variables whose values are in files.

for variable in KAFKA_CLUSTER_ID KAFKA_KRAFT_CLUSTER_ID KAFKA_CFG_SASL_ENABLED_MECHANISMS KAFKA_CLIENT_USERS \
  KAFKA_CLIENT_PASSWORDS KAFKA_INTER_BROKER_USER KAFKA_INTER_BROKER_PASSWORD KAFKA_CONTROLLER_USER \
  KAFKA_CONTROLLER_PASSWORD KAFKA_CERTIFICATE_PASSWORD KAFKA_TLS_TRUSTSTORE_FILE KAFKA_TLS_TYPE KAFKA_TLS_CLIENT_AUTH; do
  file="${variable}_FILE"
  if [ -r "${!file:-}" ]; then
    export "$variable=$(<"${!file}")"
    unset "$file"
  fi
done

# What differs in every pod, as the Helm chart has it.
if [ -n "${KAFKA_NODE_ID_COMMAND:-}" ]; then
  export KAFKA_CFG_NODE_ID="$(eval "$KAFKA_NODE_ID_COMMAND")"
fi
if [ -n "${KAFKA_CONTROLLER_QUORUM_VOTERS_COMMAND:-}" ]; then
  export KAFKA_CFG_CONTROLLER_QUORUM_VOTERS="$(eval "$KAFKA_CONTROLLER_QUORUM_VOTERS_COMMAND")"
fi

export KAFKA_HOME=/opt/bitnami/kafka
export KAFKA_CONF_FILE=/opt/bitnami/kafka/config/server.properties
export KAFKA_MOUNTED_CONF_DIR="${KAFKA_MOUNTED_CONF_DIR:-/bitnami/kafka/config}"
export KAFKA_DATA_DIR=/bitnami/kafka/data
export PATH="/opt/bitnami/kafka/bin:$PATH"
