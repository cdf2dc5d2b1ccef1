/*
 * All keys with a prefix at one revision, in their order, one after the other. At most one page of
 * them is in memory; pages are made smaller where values are large.
 *
 *     struct pager pager;
 *     pager_init(&pager, ctl, client, &options);
 *     while ((kv = pager_next(&pager)))
 *         …
 *     if (pager.exit != CTL_OK)   the error was printed
 *     pager_fini(&pager);
 *
 * One thread: pages are read by vigil_call_run.
 */
#ifndef VIGIL_CMD_CTL_EXPLORE_PAGER_H
#define VIGIL_CMD_CTL_EXPLORE_PAGER_H

#include "cmd/ctl/session.h"

enum {
    PAGER_KEYS_FIRST = 256,         /* keys of the first page */
    PAGER_KEYS_MAX = 4096,          /* keys of every later page */
    PAGER_BYTES_AIM = 4 << 20,      /* size of a page, if keys are like those before */
    PAGER_RECEIVE_BYTES = 64 << 20, /* limit on the size of a page: explore_client */
};

struct pager_options {
    struct slice prefix; /* "": all keys */
    int64_t revision;    /* 0: the newest when the first page is read */
    bool keys_only;
};

struct pager {
    struct ctl *ctl;
    vigil_client *client;
    struct pager_options options;
    int64_t revision; /* revision of all pages, after the first */
    int64_t limit;    /* limit of the next page */
    struct buf from;  /* the key at which it begins */
    struct buf end;   /* end of the range */
    vigil_call *call; /* owns the current page */
    const vigil_range_response *page;
    size_t at; /* next one in the page */
    bool is_last;
    int exit; /* enum ctl_exit */
};

void pager_init(struct pager *pager, struct ctl *ctl, vigil_client *client,
                const struct pager_options *options);
void pager_fini(struct pager *pager);

/* Valid until the next call. NULL: there are no more, or reading failed (exit). */
const vigil_kv *pager_next(struct pager *pager);

/* The client of all endpoints, with a bound of the size of answers unless --max-recv-bytes gives
 * one. NULL: as ctl_client. */
vigil_client *explore_client(struct ctl *ctl, int *ret_exit);

#endif
