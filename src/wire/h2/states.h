/* The states of a session: which role it has, what it reads next, how it ends. */
#ifndef VIGIL_WIRE_H2_STATES_H
#define VIGIL_WIRE_H2_STATES_H

enum h2_role { H2_SERVER, H2_CLIENT };

/*
 *     preface ──► head ◄──► payload        complete small frames
 *                  ├──► (pad length) ──► data ──► (skip) ──► head     DATA and its padding
 *                  └──► skip ──► head      unknown frames
 *
 * A frame without payload stays at head. Only reading_move of receive.c moves.
 */
enum h2_reading {
    H2_READ_PREFACE,
    H2_READ_HEAD,
    H2_READ_PAYLOAD,
    H2_READ_PAD_LENGTH,
    H2_READ_DATA,
    H2_READ_SKIP,
};

/*
 * A client does not drain: it leaves when the server has sent GOAWAY or when it is shut down.
 *
 *     open ──► draining ──► leaving
 *      │ └────────┼────────────┤
 *      └──────────┴────────────┴──► failed
 */
enum h2_phase {
    H2_OPEN,
    H2_DRAINING, /* first GOAWAY sent: new streams are still answered */
    H2_LEAVING,  /* last GOAWAY sent or received: only the open streams are finished */
    H2_FAILED,   /* GOAWAY with an error is queued; nothing else happens */
};

/* Work for the outermost exit, as bits of h2_session.exit_work. */
enum h2_exit_work {
    H2_CLOSE_STREAMS = 1, /* the session has failed */
    H2_ANNOUNCE_ROOM = 2, /* a stream could not be opened: on_room is due once it can */
};

#endif
