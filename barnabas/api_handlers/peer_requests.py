"""Handles the requests that nodes in the same process send to this node, with the handlers that serve clients.

Knows nothing of any API, nor of the sender.
"""

import logging
from functools import partial

from barnabas.api_handlers.answering import Later
from barnabas.api_handlers.context import Context
from barnabas.api_handlers.error_responses import error_response
from barnabas.api_handlers.registry import APIS, Promise
from barnabas.api_handlers.session import Session
from barnabas.broker import Node as ClusterNode
from barnabas.errors import CloseConnection, KafkaError, NetworkException, UnknownServerError
from barnabas.peers.in_process import InProcessPeers, Node
from barnabas.peers.peers import Done
from barnabas.wire.message import Request

logger = logging.getLogger(__name__)

EVERYTHING = Promise(APIS)


def join(peers: InProcessPeers, node: ClusterNode, promise: Promise = EVERYTHING) -> None:
    """Connects the node to its peers. Their requests have the inter-broker listener, or else the first listener.

    :param promise: the APIs that it serves to them; ``CONTROLLERS_PROMISE`` where they reach it as a controller
    """
    config = node.config
    listeners = [endpoint.name for endpoint in (*config.advertised_listeners, *config.controller_listeners)]
    wanted = config.inter_broker_listener_name
    listener = wanted if wanted in listeners else listeners[0]
    session = Session(listener=listener, client_host="127.0.0.1", promise=promise)
    peers.join(node.node_id, Node(partial(answer, node, session), newest_version))


def newest_version(request: Request) -> int:
    """Returns the newest version of such a request that this node supports, whatever it advertises to clients."""
    return APIS[request.api_key].versions.last


def answer(node: ClusterNode, session: Session, request: Request, version: int, done: Done) -> None:
    """Handles a request. The error is NETWORK_EXCEPTION where a client's connection would be closed."""
    context = Context(node, session, api_version=version, time_ms=node.clock.time_ms())
    try:
        response = session.promise.apis[request.api_key].handle(request, context)
    except KafkaError as error:
        response = error_response(request, error, version)
    except CloseConnection as error:
        logger.warning("Cannot answer a request of this node: %s", error)
        done(None, NetworkException())
        return
    except Exception:
        logger.exception(
            "Unexpected error in the handler of %s version %s: %r", type(request).__name__, version, request
        )
        response = error_response(request, UnknownServerError(), version)
    if isinstance(response, Later):
        response.then(lambda resolved: done(resolved, None))
    else:
        done(response, None)
