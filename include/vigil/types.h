/*
 * Types shared by all headers of libvigil: bytes, errors, key-value pairs.
 *
 * All headers are C99 and can be included from C++. Functions never keep a pointer that the caller
 * passes, unless the header says so: bytes and texts are copied. Everything that a function returns
 * as const belongs to the object it was read from and lives as long as that object.
 *
 * NULL instead of an object (a client, call, transaction, watch, lease, queue or item) is never a
 * crash: the function does nothing and returns VIGIL_ERROR_ARGUMENT, NULL, 0, or -1 where 0 has
 * another meaning. The same holds for NULL instead of options, a request or the place of a result.
 * Functions that make a call return NULL if the client is NULL, and all functions of vigil/call.h
 * accept that. Only what is to be set up with an _init function, and the functions of
 * vigil_set_allocator, must exist.
 */
#ifndef VIGIL_TYPES_H
#define VIGIL_TYPES_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define VIGIL_API __attribute__((visibility("default")))
#else
#define VIGIL_API
#endif

/* Some bytes, which may contain zeros. data may be NULL if size is 0. */
typedef struct vigil_bytes {
    const void *data;
    size_t size;
} vigil_bytes;

/* Puts a pointer and a size together. The bytes are not copied. */
static inline vigil_bytes vigil_bytes_of(const void *data, size_t size)
{
    vigil_bytes bytes;
    bytes.data = data;
    bytes.size = size;
    return bytes;
}

/* The bytes of a text without its final zero. They are not copied. NULL gives no bytes. */
static inline vigil_bytes vigil_text(const char *text)
{
    return vigil_bytes_of(text, text ? strlen(text) : 0);
}

/* The two arguments for a "%.*s" of printf: printf("%.*s", VIGIL_ARGS(kv->key)). It evaluates bytes
 * twice. */
#define VIGIL_ARGS(bytes) (int)(bytes).size, (const char *)(bytes).data

/*
 * What went wrong. The numbers below 100 are conditions of the library and of the connection; those
 * from 100 on are errors of the server that programs usually react to. Every other error of a
 * server is VIGIL_ERROR_SERVER, with its gRPC code and text. Numbers are never reused.
 */
typedef enum vigil_code {
    VIGIL_OK = 0,
    VIGIL_ERROR_MEMORY = 1,      /* out of memory */
    VIGIL_ERROR_ARGUMENT = 2,    /* an argument or option is invalid */
    VIGIL_ERROR_CANCELED = 3,    /* by vigil_call_cancel, or the client is being freed */
    VIGIL_ERROR_TIMEOUT = 4,     /* the deadline passed */
    VIGIL_ERROR_UNAVAILABLE = 5, /* no endpoint could be reached, or the connection broke */
    VIGIL_ERROR_TOO_LARGE = 6,   /* the response exceeds the receive limit */
    VIGIL_ERROR_PROTOCOL = 7,    /* the server sent bytes that make no sense */
    VIGIL_ERROR_WOULD_BLOCK = 8, /* a blocking function was called inside a callback */
    VIGIL_ERROR_SYSTEM = 9,      /* a system call failed, for instance: too many open files */
    VIGIL_ERROR_DECODE = 10,     /* the program's function refused to decode a value */
    VIGIL_ERROR_SERVER = 99,     /* see grpc_code and text */
    VIGIL_ERROR_COMPACTED = 100, /* the revision has been compacted */
    VIGIL_ERROR_FUTURE_REVISION = 101,
    VIGIL_ERROR_NO_SPACE = 102, /* the store is full; see alarms and quota of the server */
    VIGIL_ERROR_LEASE_NOT_FOUND = 103,
    VIGIL_ERROR_LEASE_EXISTS = 104,
    VIGIL_ERROR_NO_LEADER = 105,
    VIGIL_ERROR_PERMISSION_DENIED = 106,
    VIGIL_ERROR_UNAUTHENTICATED = 107, /* unknown user, wrong password or invalid token */
    VIGIL_ERROR_REQUEST_TOO_LARGE = 108,
    VIGIL_ERROR_TOO_MANY_REQUESTS = 109,
    VIGIL_ERROR_MEMBER_NOT_FOUND = 110,
    VIGIL_ERROR_USER_NOT_FOUND = 111,
    VIGIL_ERROR_ROLE_NOT_FOUND = 112,
    VIGIL_ERROR_USER_EXISTS = 113,
    VIGIL_ERROR_ROLE_EXISTS = 114,
    VIGIL_ERROR_AUTH_NOT_ENABLED = 115,
    VIGIL_ERROR_UNIMPLEMENTED = 116
} vigil_code;

/* Whether a call that failed may have changed something. */
typedef enum vigil_outcome {
    VIGIL_NOT_SENT = 0, /* no server has seen it: it may be repeated */
    VIGIL_UNKNOWN = 1, /* it was sent, and its answer is missing or says that the server has stopped
                          waiting for the cluster, or has lost it: it may have taken effect. So may
                          a change that etcd answers with "database space exceeded". */
    VIGIL_REFUSED = 2  /* the server answered with another error: it did not take effect */
} vigil_outcome;

/* The size of the text of an error, with its final zero. */
enum { VIGIL_ERROR_TEXT_BYTES = 232 };

/* Why something failed. */
typedef struct vigil_error {
    int code;      /* enum vigil_code */
    int grpc_code; /* code of the server's status; -1 if no server answered */
    int outcome;   /* enum vigil_outcome */
    int reserved;
    char text[VIGIL_ERROR_TEXT_BYTES]; /* one line for people; "" if code is VIGIL_OK */
} vigil_error;

/* The name of a code, for instance "VIGIL_ERROR_COMPACTED". Never NULL, also not for a number that
 * is not a code. */
VIGIL_API const char *vigil_code_name(int code);

/* A key, its value, and when it was changed. */
typedef struct vigil_kv {
    vigil_bytes key;
    int64_t create_revision; /* revision of the put that created the key */
    int64_t mod_revision;    /* revision of the last put */
    int64_t version;         /* 1 for the first put since the key was created */
    vigil_bytes value;
    int64_t lease; /* 0: none */
} vigil_kv;

/* What every response of a server begins with. */
typedef struct vigil_header {
    uint64_t cluster_id;
    uint64_t member_id;
    int64_t revision; /* revision of the store when the request was executed */
    uint64_t raft_term;
} vigil_header;

#ifdef __cplusplus
}
#endif

#endif
