/*
 * Candidates that only the server knows, or the file of profiles.
 *
 * The server is the one of the command line so far: its flags, the environment and the profile. The
 * user waits, so all of it takes at most COMPLETE_MS, and there are at most COMPLETE_MAX
 * candidates. Nothing is printed for errors, and no password is requested.
 *
 * Keys are completed like paths: up to the next slash, and further where there is only one way.
 */
#ifndef VIGIL_CMD_COMPLETE_ASK_H
#define VIGIL_CMD_COMPLETE_ASK_H

#include "base/slice.h"
#include "cmd/ctl/find.h"

enum {
    COMPLETE_MS = 700,
    COMPLETE_MAX = 100,
    COMPLETE_PAGE = 200,          /* keys of one request */
    COMPLETE_PAGES_MAX = 8,       /* for one list of candidates */
    COMPLETE_DEPTH_MAX = 16,      /* slashes that are passed at once */
    COMPLETE_BYTES_MAX = 4 << 20, /* limit on the size of one answer */
};

enum complete_kind {
    COMPLETE_KEYS,
    COMPLETE_LEASES,
    COMPLETE_USERS,
    COMPLETE_ROLES,
    COMPLETE_MEMBERS,
    COMPLETE_PROFILES,
};

struct complete_asked {
    enum complete_kind kind;
    enum ctl_style style;
    const char *current; /* the beginning of the candidates */
    void (*offer)(void *ctx, struct slice text, const char *help);
    void *ctx;
};

/* found has the command; count and args are the command line before the current word. */
void complete_ask(const struct complete_asked *asked, const struct ctl_found *found, int count,
                  char **args);

#endif
