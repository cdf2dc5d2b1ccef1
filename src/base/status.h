/*
 * Every result of a call, in one table: name, gRPC code, and the text that a client sees.
 *
 * The texts that begin with "etcdserver:" are etcd's own, letter by letter: its clients compare
 * them. The second part has our own conditions, which lower layers return and the APIs map.
 */
#ifndef VIGIL_BASE_STATUS_H
#define VIGIL_BASE_STATUS_H

#include "base/macros.h"

enum grpc_code {
    GRPC_OK = 0,
    GRPC_CANCELLED = 1,
    GRPC_UNKNOWN = 2,
    GRPC_INVALID_ARGUMENT = 3,
    GRPC_DEADLINE_EXCEEDED = 4,
    GRPC_NOT_FOUND = 5,
    GRPC_ALREADY_EXISTS = 6,
    GRPC_PERMISSION_DENIED = 7,
    GRPC_RESOURCE_EXHAUSTED = 8,
    GRPC_FAILED_PRECONDITION = 9,
    GRPC_ABORTED = 10,
    GRPC_OUT_OF_RANGE = 11,
    GRPC_UNIMPLEMENTED = 12,
    GRPC_INTERNAL = 13,
    GRPC_UNAVAILABLE = 14,
    GRPC_DATA_LOSS = 15,
    GRPC_UNAUTHENTICATED = 16,
};

#define STATUS_TABLE(X)                                                                            \
    X(OK, GRPC_OK, "")                                                                             \
    /* etcd's */                                                                                   \
    X(EMPTY_KEY, GRPC_INVALID_ARGUMENT, "etcdserver: key is not provided")                         \
    X(KEY_NOT_FOUND, GRPC_INVALID_ARGUMENT, "etcdserver: key not found")                           \
    X(VALUE_PROVIDED, GRPC_INVALID_ARGUMENT, "etcdserver: value is provided")                      \
    X(LEASE_PROVIDED, GRPC_INVALID_ARGUMENT, "etcdserver: lease is provided")                      \
    X(TOO_MANY_OPS, GRPC_INVALID_ARGUMENT, "etcdserver: too many operations in txn request")       \
    X(DUPLICATE_KEY, GRPC_INVALID_ARGUMENT, "etcdserver: duplicate key given in txn request")      \
    X(INVALID_CLIENT_API_VERSION, GRPC_INVALID_ARGUMENT, "etcdserver: invalid client api version") \
    X(INVALID_SORT_OPTION, GRPC_INVALID_ARGUMENT, "etcdserver: invalid sort option")               \
    X(COMPACTED, GRPC_OUT_OF_RANGE, "etcdserver: mvcc: required revision has been compacted")      \
    X(FUTURE_REV, GRPC_OUT_OF_RANGE, "etcdserver: mvcc: required revision is a future revision")   \
    X(NO_SPACE, GRPC_RESOURCE_EXHAUSTED, "etcdserver: mvcc: database space exceeded")              \
    X(LEASE_NOT_FOUND, GRPC_NOT_FOUND, "etcdserver: requested lease not found")                    \
    X(LEASE_EXIST, GRPC_FAILED_PRECONDITION, "etcdserver: lease already exists")                   \
    X(LEASE_TTL_TOO_LARGE, GRPC_OUT_OF_RANGE, "etcdserver: too large lease TTL")                   \
    X(WATCH_CANCELED, GRPC_CANCELLED, "etcdserver: watch canceled")                                \
    X(MEMBER_EXIST, GRPC_FAILED_PRECONDITION, "etcdserver: member ID already exist")               \
    X(PEER_URL_EXIST, GRPC_FAILED_PRECONDITION, "etcdserver: Peer URLs already exists")            \
    X(MEMBER_NOT_ENOUGH_STARTED, GRPC_UNKNOWN,                                                     \
      "etcdserver: re-configuration failed due to not enough started members")                     \
    X(MEMBER_BAD_UR_LS, GRPC_INVALID_ARGUMENT, "etcdserver: given member URLs are invalid")        \
    X(MEMBER_NOT_FOUND, GRPC_NOT_FOUND, "etcdserver: member not found")                            \
    X(MEMBER_NOT_LEARNER, GRPC_FAILED_PRECONDITION,                                                \
      "etcdserver: can only promote a learner member")                                             \
    X(LEARNER_NOT_READY, GRPC_FAILED_PRECONDITION,                                                 \
      "etcdserver: can only promote a learner member which is in sync with leader")                \
    X(TOO_MANY_LEARNERS, GRPC_FAILED_PRECONDITION,                                                 \
      "etcdserver: too many learner members in cluster")                                           \
    X(CLUSTER_ID_MISMATCH, GRPC_FAILED_PRECONDITION, "etcdserver: cluster ID mismatch")            \
    X(REQUEST_TOO_LARGE, GRPC_INVALID_ARGUMENT, "etcdserver: request is too large")                \
    X(REQUEST_TOO_MANY_REQUESTS, GRPC_RESOURCE_EXHAUSTED, "etcdserver: too many requests")         \
    X(ROOT_USER_NOT_EXIST, GRPC_FAILED_PRECONDITION, "etcdserver: root user does not exist")       \
    X(ROOT_ROLE_NOT_EXIST, GRPC_FAILED_PRECONDITION,                                               \
      "etcdserver: root user does not have root role")                                             \
    X(USER_ALREADY_EXIST, GRPC_FAILED_PRECONDITION, "etcdserver: user name already exists")        \
    X(USER_EMPTY, GRPC_INVALID_ARGUMENT, "etcdserver: user name is empty")                         \
    X(USER_NOT_FOUND, GRPC_FAILED_PRECONDITION, "etcdserver: user name not found")                 \
    X(ROLE_ALREADY_EXIST, GRPC_FAILED_PRECONDITION, "etcdserver: role name already exists")        \
    X(ROLE_NOT_FOUND, GRPC_FAILED_PRECONDITION, "etcdserver: role name not found")                 \
    X(ROLE_EMPTY, GRPC_INVALID_ARGUMENT, "etcdserver: role name is empty")                         \
    X(AUTH_FAILED, GRPC_INVALID_ARGUMENT,                                                          \
      "etcdserver: authentication failed, invalid user ID or password")                            \
    X(PERMISSION_NOT_GIVEN, GRPC_INVALID_ARGUMENT, "etcdserver: permission not given")             \
    X(PERMISSION_DENIED, GRPC_PERMISSION_DENIED, "etcdserver: permission denied")                  \
    X(ROLE_NOT_GRANTED, GRPC_FAILED_PRECONDITION, "etcdserver: role is not granted to the user")   \
    X(PERMISSION_NOT_GRANTED, GRPC_FAILED_PRECONDITION,                                            \
      "etcdserver: permission is not granted to the role")                                         \
    X(AUTH_NOT_ENABLED, GRPC_FAILED_PRECONDITION, "etcdserver: authentication is not enabled")     \
    X(INVALID_AUTH_TOKEN, GRPC_UNAUTHENTICATED, "etcdserver: invalid auth token")                  \
    X(INVALID_AUTH_MGMT, GRPC_INVALID_ARGUMENT, "etcdserver: invalid auth management")             \
    X(AUTH_OLD_REVISION, GRPC_INVALID_ARGUMENT, "etcdserver: revision of auth store is old")       \
    X(NO_LEADER, GRPC_UNAVAILABLE, "etcdserver: no leader")                                        \
    X(NOT_LEADER, GRPC_FAILED_PRECONDITION, "etcdserver: not leader")                              \
    X(LEADER_CHANGED, GRPC_UNAVAILABLE, "etcdserver: leader changed")                              \
    X(NOT_CAPABLE, GRPC_FAILED_PRECONDITION, "etcdserver: not capable")                            \
    X(STOPPED, GRPC_UNAVAILABLE, "etcdserver: server stopped")                                     \
    X(TIMEOUT, GRPC_UNAVAILABLE, "etcdserver: request timed out")                                  \
    X(TIMEOUT_DUE_TO_LEADER_FAIL, GRPC_UNAVAILABLE,                                                \
      "etcdserver: request timed out, possibly due to previous leader failure")                    \
    X(TIMEOUT_DUE_TO_CONNECTION_LOST, GRPC_UNAVAILABLE,                                            \
      "etcdserver: request timed out, possibly due to connection lost")                            \
    X(TIMEOUT_WAIT_APPLIED_INDEX, GRPC_UNAVAILABLE,                                                \
      "etcdserver: request timed out, waiting for the applied index took too long")                \
    X(UNHEALTHY, GRPC_UNAVAILABLE, "etcdserver: unhealthy cluster")                                \
    X(CORRUPT, GRPC_DATA_LOSS, "etcdserver: corrupt cluster")                                      \
    X(NOT_SUPPORTED_FOR_LEARNER, GRPC_FAILED_PRECONDITION,                                         \
      "etcdserver: rpc not supported for learner")                                                 \
    X(BAD_LEADER_TRANSFEREE, GRPC_FAILED_PRECONDITION, "etcdserver: bad leader transferee")        \
    X(WRONG_DOWNGRADE_VERSION_FORMAT, GRPC_INVALID_ARGUMENT,                                       \
      "etcdserver: wrong downgrade target version format")                                         \
    X(INVALID_DOWNGRADE_TARGET_VERSION, GRPC_INVALID_ARGUMENT,                                     \
      "etcdserver: invalid downgrade target version")                                              \
    X(CLUSTER_VERSION_UNAVAILABLE, GRPC_FAILED_PRECONDITION,                                       \
      "etcdserver: cluster version not found during downgrade")                                    \
    X(DOWNGRADE_IN_PROCESS, GRPC_FAILED_PRECONDITION,                                              \
      "etcdserver: cluster has a downgrade job in progress")                                       \
    X(NO_INFLIGHT_DOWNGRADE, GRPC_FAILED_PRECONDITION, "etcdserver: no inflight downgrade job")    \
    X(CANCELED, GRPC_CANCELLED, "etcdserver: request canceled")                                    \
    X(DEADLINE_EXCEEDED, GRPC_DEADLINE_EXCEEDED, "etcdserver: context deadline exceeded")          \
    /* ours */                                                                                     \
    X(NOMEM, GRPC_RESOURCE_EXHAUSTED,                                                              \
      "vigil: clients hold too much memory, see --max-client-bytes")                               \
    X(LIMIT, GRPC_RESOURCE_EXHAUSTED, "vigil: a limit was reached")                                \
    X(TOO_MANY_WATCHES, GRPC_RESOURCE_EXHAUSTED, "vigil: too many watches on this server")         \
    X(MALFORMED, GRPC_INTERNAL, "vigil: malformed bytes")                                          \
    X(UNIMPLEMENTED, GRPC_UNIMPLEMENTED, "vigil: not implemented")                                 \
    X(INTERNAL, GRPC_INTERNAL, "vigil: internal error")                                            \
    X(IO, GRPC_UNAVAILABLE, "vigil: input or output failed")                                       \
    X(DISK_FULL, GRPC_RESOURCE_EXHAUSTED,                                                          \
      "vigil: no space left on the disk of the data directory")                                    \
    X(DAMAGED, GRPC_DATA_LOSS, "vigil: stored bytes are damaged")                                  \
    X(IN_USE, GRPC_FAILED_PRECONDITION, "vigil: already in use")                                   \
    X(WRONG_FORMAT, GRPC_FAILED_PRECONDITION, "vigil: not in a format this version reads")         \
    X(NOT_FOUND, GRPC_NOT_FOUND, "vigil: not found")                                               \
    X(EXISTS, GRPC_ALREADY_EXISTS, "vigil: exists already")                                        \
    X(INVALID, GRPC_INVALID_ARGUMENT, "vigil: invalid argument")                                   \
    X(AGAIN, GRPC_UNAVAILABLE, "vigil: not ready, try again")                                      \
    X(END, GRPC_OK, "vigil: end of input")                                                         \
    X(CLOSED, GRPC_UNAVAILABLE, "vigil: closed")                                                   \
    X(NOT_SYNCED, GRPC_UNAVAILABLE, "vigil: the mirror of the cluster is not complete yet")        \
    X(UPSTREAM, GRPC_UNKNOWN, "vigil: the cluster has answered with an unknown error")             \
    X(UNAVAILABLE, GRPC_UNAVAILABLE, "vigil: not available at the moment")

enum status {
#define X(name, code, text) ST_##name,
    STATUS_TABLE(X)
#undef X
        ST_COUNT
};

enum grpc_code status_code(enum status status);

/* The text for clients; never NULL. */
const char *status_text(enum status status);
/* The same without "vigil: ", for the end of a sentence: "cannot open FORMAT: not found". */
const char *status_reason(enum status status);

/* The name for logs: "COMPACTED". */
const char *status_name(enum status status);

/* The status of a failed system call, from errno. */
enum status status_from_errno(int error_number);

#endif
