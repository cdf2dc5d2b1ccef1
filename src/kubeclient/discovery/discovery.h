/*
 * What a client knows about the resources of its server. A table is filled from the answers to
 * discovery requests, and replaces the one that is in use when it is complete:
 *
 *     APIGroupDiscoveryList    all groups with their resources (aggregated discovery, v2 and
 *                              v2beta1)
 *     APIVersions, APIGroupList, and an APIResourceList for each version of a group
 *                              older servers, and those behind some proxies
 *
 * The order of the rows is the server's preference: the core group first, the other groups in the
 * order in which the server names them, and the preferred version of each group first.
 */
#ifndef VIGIL_KUBECLIENT_DISCOVERY_DISCOVERY_H
#define VIGIL_KUBECLIENT_DISCOVERY_DISCOVERY_H

#include "base/buf.h"
#include "base/error.h"

#include <vigil/kube/discovery.h>

enum {
    DISCOVERY_RESOURCES_MAX = 20000, /* limit on the resources of all groups and versions */
    /* Limit on the versions of all groups that are read one by one. */
    DISCOVERY_VERSIONS_MAX = 2000,
    DISCOVERY_BYTES_MAX = 16 << 20, /* limit on the size of the texts of a table */
};

struct discovery;
struct discovery_table;

/* Without a table. ST_NOMEM. */
MUST_CHECK
enum status discovery_new(struct discovery **ret_discovery);
void discovery_free(struct discovery *discovery); /* accepts NULL */

/* Any thread. Takes the table, which replaces the one in use. */
void discovery_publish(struct discovery *discovery, struct discovery_table *table);
/* Any thread: vigil_kube_find_resource. */
int discovery_find(struct discovery *discovery, const char *name,
                   vigil_kube_resource *ret_resource);

/* Empty. ST_NOMEM. */
MUST_CHECK
enum status discovery_table_new(struct discovery_table **ret_table);
void discovery_table_free(struct discovery_table *table); /* accepts NULL */
DEFINE_CLEANUP(struct discovery_table *, discovery_table_free)
size_t discovery_table_count(const struct discovery_table *table);

/* Paths of documents that are still to be read. */
struct discovery_paths {
    struct buf texts; /* each with a final zero */
    size_t count;
};

/*
 * Adds what a document says: the answer to /api, /apis, or to one of the paths that are appended to
 * `paths`. What is not understood in a document is left out.
 *
 * ST_MALFORMED: the document is of another kind. ST_LIMIT, ST_NOMEM. The error has a text.
 */
MUST_CHECK
enum status discovery_table_read(struct discovery_table *table, struct slice document,
                                 struct discovery_paths *paths, struct error *error);

#endif
