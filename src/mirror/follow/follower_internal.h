/*
 * The follower's state, and the steps that follower.c and follower_load.c take of each other. They
 * are one state machine: follower.c has the states of following and enters those of loading, whose
 * steps are in follower_load.c; each of these ends in follower.c, by following, pausing or a reset.
 */
#ifndef VIGIL_MIRROR_FOLLOW_FOLLOWER_INTERNAL_H
#define VIGIL_MIRROR_FOLLOW_FOLLOWER_INTERNAL_H

#include "client/call/client.h"
#include "mirror/directory/directory.h"
#include "mirror/follow/apply_queue.h"
#include "mirror/follow/compactions.h"
#include "mirror/follow/comparer.h"
#include "mirror/follow/follow_log.h"
#include "mirror/follow/lag_monitor.h"
#include "mirror/follow/member_poll.h"
#include "mirror/follow/status_poll.h"
#include "mirror/follow/watches.h"
#include "mirror/link/state.h"
#include "mirror/load/loader.h"

#define FOLLOWER_PAUSE_NS (1 * NS_PER_S)

enum follower_state {
    FOLLOWER_CONNECTING, /* the stream of watches is being opened */
    FOLLOWER_COMPARING,  /* histories; the stream is open */
    FOLLOWER_FOLLOWING,  /* the watches are created */
    FOLLOWER_DRAINING,   /* a state must be loaded once the mirror has applied what it was given */
    FOLLOWER_LOADING,    /* pages are read */
    FOLLOWER_GIVING,     /* the state is given to the mirror */
    FOLLOWER_PAUSING,    /* after a failure */
    FOLLOWER_RESET,      /* another history, or damage */
};

struct follower {
    /* Constant. */
    const struct mirror_options *cluster; /* borrowed, as the next three */
    struct mirror_directory *directory;
    struct engine *mirror; /* in that directory */
    struct mirror_state *shown;
    vigil_client *client; /* owned */
    struct ranges ranges;

    /* The thread of the client's loop. */
    enum follower_state state;
    struct driver_part part;
    struct watches *watches; /* owned, as all that follow */
    struct comparer *comparer;
    struct compactions *compactions;
    struct lag_monitor *lag_monitor;
    struct status_poll *status_poll;
    struct member_poll *member_poll;
    struct apply_queue *apply_queue;
    struct merge *merge;      /* while following; otherwise NULL */
    struct loader *loader;    /* while loading */
    struct load *load;        /* while loading or giving */
    struct mirror_walk *walk; /* while loading */
    struct history_check history_check;
    struct intake intake;
    const char *load_why; /* a state must be loaded before the watches are created; NULL: none */
    bool checks;          /* that state is the mirror's own revision, which must be the same */
    /* The mirror and the member at the other end of this stream have the same past. While a state
     * is loaded: they have if that succeeds. */
    bool is_proven;
    bool trust_progress; /* for this server */
    bool all_keys;       /* one watch for all keys, whatever the prefixes are */
    int64_t given;       /* the last revision that was given to the mirror */
    int64_t load_revision;
    char version[32];    /* version of the member that is followed */
    enum status failure; /* failure of the mirror, until everything in flight has returned */
    struct follow_log follow_log;
    int64_t progress_at_ns; /* a request for progress was sent then; 0: none is unanswered */
    bool progress_again;
    struct timer pause, progress;

    /* Any thread. */
    struct driver_command begin, progress_wanted, compacted;
    _Atomic bool progress_posted, compacted_posted;
    _Atomic int64_t compacted_to;
    _Atomic int64_t complete_at; /* the mirror is complete when it has this revision; 0: unknown */
};

static inline struct loop *follower_loop(const struct follower *follower)
{
    return follower->client->driver.loop;
}

/* -- follower.c -- */
void follower_check(const struct follower *follower);
/* Frees what only the state before needs, moves, and checks. */
void follower_move(struct follower *follower, enum follower_state next);
void follower_pause(struct follower *follower, const char *reason, int64_t pause_ns);
/* The mirror is of another history, or damaged: it is to be discarded. */
void follower_reset(struct follower *follower, const char *reason);
/* Requests for damaged bytes would fail until the mirror is loaded again. True: it is reset. */
bool follower_reset_if_damaged(struct follower *follower);
/* Everything has returned from the mirror. What it has refused is watched again. */
void follower_forget_failure(struct follower *follower);
/* The stream may be open already. */
void follower_connect(struct follower *follower);

/* -- follower_load.c -- */
/* Loads a state when the mirror has applied what it was given. */
void follower_drain(struct follower *follower);
void follower_load(struct follower *follower);
/* Gives parts of the state to the mirror while there is room. */
void follower_give(struct follower *follower);
/* The mirror has refused parts before: the disk was full, or a file could not be made. */
void follower_give_again(struct follower *follower);
/* Everything has returned from the mirror, and some of it was refused. */
void follower_giving_failed(struct follower *follower);
/* The mirror shows the whole state. */
void follower_loaded(struct follower *follower);

#endif
