/*
 * The members of the local engine: the writer's list, stored as rows of the store. The key of a row
 * is the id, its value the message Member. This server has no row until its URLs are changed.
 */
#ifndef VIGIL_ENGINE_LOCAL_STATE_MEMBERS_H
#define VIGIL_ENGINE_LOCAL_STATE_MEMBERS_H

#include "engine/member_list.h"
#include "store/mvcc/applier.h"

/* While the store opens: a row of ROW_MEMBER. */
MUST_CHECK
enum status local_members_load_row(struct member_list *list, const struct row *row);
/* After the store was opened: adds this server, with these URLs unless they were changed. */
void local_members_open(struct member_list *list, uint64_t self, const struct slice *peer_urls,
                        size_t peer_url_count);

/* On the writer's thread: changes and lists. */
MUST_CHECK
enum status local_members_execute(struct member_list *list, struct applier *applier,
                                  struct engine_members *members);

#endif
