# Sourced by scripts that were written for Bitnami's image.
MODULE="${MODULE:-kafka}"
log() { echo "$MODULE $(date "+%T.%2N") ==> $*" >&2; }
info() { log "INFO  $*"; }
warn() { log "WARN  $*"; }
error() { log "ERROR $*"; }
debug() { if [ "${BITNAMI_DEBUG:-false}" = true ]; then log "DEBUG $*"; fi; }
