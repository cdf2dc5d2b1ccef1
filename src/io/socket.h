/*
 * Stream sockets, and the network they come from: the machine's (network_posix) or a simulated one
 * (io/sim.h). Nothing here blocks. A socket is a small value embedded in its owner, who watches
 * its handle with the loop of the same network. One owner, one thread at a time.
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
};

struct socket {
    const struct socket_ops *ops; /* NULL: not open */
    void *world;                  /* the simulation it belongs to; NULL for the machine's */
    int handle;                   /* for io_watch */
};

struct listener_ops {
    enum status (*accept)(struct listener *listener, struct socket *ret_socket);
    void (*close)(struct listener *listener);
};

struct listener {
    const struct listener_ops *ops; /* NULL: not open */
    void *world;
    int handle;             /* readable when a connection waits */
    struct address address; /* where it listens: a port of 0 has become the one chosen */
};

struct network_ops {
    enum status (*loop_new)(struct network *network, struct loop **ret_loop);
    enum status (*listen)(struct network *network, const struct address *address,
                          struct listener *ret_listener, struct error *error);
    enum status (*connect)(struct network *network, const struct address *address,
                           struct socket *ret_socket);
};

struct network {
    const struct network_ops *ops;
    bool stepped; /* its loops are stepped by one thread (a simulation): start no threads */
};

/* The machine's. One for the process, never freed. */
struct network *network_posix(void);

/* A loop that can watch this network's handles. */
MUST_CHECK
enum status network_loop_new(struct network *network, struct loop **ret_loop);
/* The error says what could not be listened on, and why. A Unix socket's file left behind by a
 * process that is gone is replaced; one that somebody listens on is ST_IN_USE. */
MUST_CHECK
enum status network_listen(struct network *network, const struct address *address,
                           struct listener *ret_listener, struct error *error);
/* Under way: writable when it is open or failed; the first write tells. */
MUST_CHECK
enum status network_connect(struct network *network, const struct address *address,
                            struct socket *ret_socket);

/* At least one byte, ST_AGAIN (nothing now), ST_END (the peer sent its last), or ST_CLOSED (the
 * connection is broken). */
MUST_CHECK
enum status socket_read(struct socket *socket, void *to, size_t len, size_t *ret_len);
/* At least one byte of them, ST_AGAIN (no room now), or ST_CLOSED. */
MUST_CHECK
enum status socket_writev(struct socket *socket, const struct iovec *parts, int count,
                          size_t *ret_len);
MUST_CHECK
enum status socket_write(struct socket *socket, struct slice bytes, size_t *ret_len);
/* Sends our end after what was written; reading goes on. */
void socket_shutdown(struct socket *socket);
void socket_close(struct socket *socket); /* accepts one that is not open */
/* Where the other end is; ST_CLOSED when it is gone. */
MUST_CHECK
enum status socket_peer(const struct socket *socket, struct address *ret_address);

/* A connection; ST_AGAIN (none waits); ST_LIMIT (no descriptor or memory left: wait a little);
 * ST_CLOSED (one came and went: try again). */
MUST_CHECK
enum status listener_accept(struct listener *listener, struct socket *ret_socket);
/* Removes a Unix socket's file. Accepts one that is not open. */
void listener_close(struct listener *listener);

#endif
