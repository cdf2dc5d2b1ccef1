/*
 * Stream sockets and the network that they belong to: the operating system's (network_posix) or a
 * simulated one (tests/doubles/simulated/sim.h). Nothing here blocks. A socket is a small value
 * embedded in its owner, which watches its handle with a loop of the same network. One owner, one
 * thread at a time.
 */
#ifndef VIGIL_IO_SOCKET_H
#define VIGIL_IO_SOCKET_H

#include "base/error.h"
#include "base/slice.h"
#include "io/address.h"

#include <sys/uio.h>

struct loop;
struct clock;
struct socket;
struct listener;
struct network;

struct socket_ops {
    enum status (*read)(struct socket *socket, void *to, size_t len, size_t *ret_len);
    enum status (*writev)(struct socket *socket, const struct iovec *parts, int count,
                          size_t *ret_len);
    void (*shutdown)(struct socket *socket);
    void (*close)(struct socket *socket);
    enum status (*peer)(const struct socket *socket, struct address *ret_address);
    enum status (*connected)(struct socket *socket);
};

struct socket {
    const struct socket_ops *ops; /* NULL: not open */
    void *world;                  /* the simulation; NULL for the operating system */
    int handle;                   /* for io_watch */
    int error_number; /* an errno: why the last call returned ST_CLOSED; 0: it did not */
};

struct listener_ops {
    enum status (*accept)(struct listener *listener, struct socket *ret_socket);
    void (*close)(struct listener *listener);
};

struct listener {
    const struct listener_ops *ops; /* NULL: not open */
    void *world;
    int handle;             /* readable when a connection is waiting */
    struct address address; /* the bound address: a port of 0 is replaced by the chosen one */
};

struct network_ops {
    enum status (*loop_new)(struct network *network, struct loop **ret_loop);
    enum status (*listen)(struct network *network, const struct address *address,
                          struct listener *ret_listener, struct error *error);
    enum status (*connect)(struct network *network, const struct address *address,
                           struct socket *ret_socket, struct error *error);
};

struct network {
    const struct network_ops *ops;
    bool stepped; /* one thread steps all loops (a simulation): start no threads */
    /* Borrowed: where connections to IP addresses come from, with port 0; NULL: the system chooses.
     * For programs that need more connections to one server than an address has ports, which copy
     * network_posix and set this. */
    const struct address *source;
};

/* The operating system's. One per process, never freed. */
struct network *network_posix(void);

/* A loop that can watch this network's handles. */
MUST_CHECK
enum status network_loop_new(struct network *network, struct loop **ret_loop);
/* The error says what could not be bound, and why. A Unix socket's file that a terminated process
 * left behind is replaced; if a process listens on it, ST_IN_USE. */
MUST_CHECK
enum status network_listen(struct network *network, const struct address *address,
                           struct listener *ret_listener, struct error *error);
/* Begins to connect: the socket is writable when the connection is open or has failed, which
 * socket_connected and the first write report. The error says why it failed at once, without the
 * address: "connection refused". */
MUST_CHECK
enum status network_connect(struct network *network, const struct address *address,
                            struct socket *ret_socket, struct error *error);
/* To be called when the socket has become writable for the first time. ST_OK: the connection is
 * open; ST_CLOSED: it failed, and error_number says why. */
MUST_CHECK
enum status socket_connected(struct socket *socket);
/* The words of an errno as Go writes them: "connection refused". */
enum { SOCKET_REASON_BYTES = 64 };
void socket_reason_format(int error_number, char text[SOCKET_REASON_BYTES]);

/* At least one byte, ST_AGAIN (nothing now), ST_END (the peer sent its last byte), or ST_CLOSED
 * (the connection is broken). */
MUST_CHECK
enum status socket_read(struct socket *socket, void *to, size_t len, size_t *ret_len);
/* At least one byte, ST_AGAIN (no room now), or ST_CLOSED. */
MUST_CHECK
enum status socket_writev(struct socket *socket, const struct iovec *parts, int count,
                          size_t *ret_len);
MUST_CHECK
enum status socket_write(struct socket *socket, struct slice bytes, size_t *ret_len);
/* Sends our end after what was written; reading is still possible. */
void socket_shutdown(struct socket *socket);
void socket_close(struct socket *socket); /* accepts a socket that is not open */
/* The address of the peer; ST_CLOSED: it is gone. */
MUST_CHECK
enum status socket_peer(const struct socket *socket, struct address *ret_address);

/* A connection; ST_AGAIN (none is waiting); ST_LIMIT (out of descriptors or memory: wait a little);
 * ST_CLOSED (it was closed before it was accepted: try again). */
MUST_CHECK
enum status listener_accept(struct listener *listener, struct socket *ret_socket);
/* Removes a Unix socket's file. Accepts a listener that is not open. */
void listener_close(struct listener *listener);

#endif
