/*
 * The way of a client to the store in its process: a network whose loops belong to a store's part
 * (embed/handle.h), and whose connections have no sockets. What a client writes is fed to the
 * server's side of the connection, and what it reads is filled by it, both at once and without a
 * buffer in between:
 *
 *     client's connection ── socket_write ──► wire_connection_feed ──► etcd's API ──► engine
 *                         ◄── socket_read ─── wire_connection_fill ◄──────┘
 *
 * Both sides run in the turns of the client's loop, so a link needs no lock and no descriptor. What
 * can be read or written at the end of a turn is reported then, by links_serve; the loop does not
 * wait for it. HTTP/2's flow control limits what either side holds.
 */
#ifndef VIGIL_EMBED_LINK_H
#define VIGIL_EMBED_LINK_H

#include "base/container/list.h"
#include "io/socket.h"

struct wire_server;

/* Embedded in the store's part; the loop's thread. */
struct links {
    struct network network;   /* for client_new_over */
    struct loop *loop;        /* borrowed; NULL: not made yet */
    struct wire_server *wire; /* borrowed; NULL: connections are refused … */
    const char *refusal;      /* … for this reason */
    struct list open;         /* struct link */
    int next_handle;
    /* The loop was made: prepares its user before it runs. */
    enum status (*started)(struct links *links);
};

void links_init(struct links *links, enum status (*started)(struct links *links));

/* At the end of a turn: lets the client read and write what it wants to. True: it is not finished,
 * because that takes long. */
bool links_serve(struct links *links);

/* All connections were closed by the client. Asserts it. */
void links_check_closed(const struct links *links);

#endif
