/*
 * The endpoints of a cluster: those that the program gives, or the targets of DNS SRV records,
 * which are looked up again and again. Owned by the channel; the loop's thread.
 */
#ifndef VIGIL_CLIENT_NAMES_ENDPOINT_LIST_H
#define VIGIL_CLIENT_NAMES_ENDPOINT_LIST_H

#include "client/names/endpoint.h"
#include "client/names/resolver.h"

enum { ENDPOINTS_MAX = 256 };

/* Zeroed, it is empty. */
struct endpoint_list {
    struct endpoint *all; /* owned */
    size_t count;         /* 0 only before the first lookup of SRV records */
    /* Where to look them up; borrowed. */
    const char *srv_domain; /* NULL: the endpoints are given */
    const char *srv_name;   /* may be NULL */
    bool srv_secure;        /* the targets use TLS */
};

/* text: separated by commas. The error says what is wrong; ST_NOMEM. */
MUST_CHECK
enum status endpoint_list_parse(struct endpoint_list *list, const char *text, struct error *error);
void endpoint_list_fini(struct endpoint_list *list);

static inline const struct endpoint *endpoint_list_at(const struct endpoint_list *list, size_t at)
{
    return &list->all[at % list->count];
}

/* Looks the SRV records up; the result is for endpoint_list_take. ST_INVALID: the name is too long.
 */
MUST_CHECK
enum status endpoint_list_look_up(const struct endpoint_list *list, struct resolver *resolver,
                                  struct lookup_hooks hooks, struct lookup **ret_lookup);
/* Replaces the endpoints by the targets. Without any, the old ones stay. NULL, or what is wrong,
 * borrowed from the result. */
const char *endpoint_list_take(struct endpoint_list *list, const struct lookup_result *result);

#endif
