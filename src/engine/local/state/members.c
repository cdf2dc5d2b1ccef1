#include "engine/local/state/members.h"

#include "base/buf.h"
#include "base/xalloc.h"
#include "codec/pb/rpc.pb.h"

#include <endian.h>
#include <stdlib.h>

enum status local_members_load_row(struct member_list *list, const struct row *row)
{
    uint64_t id_be;
    if (row->key.len != sizeof(id_be))
        return ST_DAMAGED;
    memcpy(&id_be, row->key.ptr, sizeof(id_be));
    uint64_t id = be64toh(id_be);
    if (row->deleted) {
        member_list_drop(list, id);
        return ST_OK;
    }
    AUTO(arena_fini) struct arena arena;
    arena_init(&arena, NULL, 0, 1 << 16);
    struct pb_member stored;
    if (pb_decode(&pb_member_table, row->value, &arena, &stored) != ST_OK)
        return ST_DAMAGED;
    if (!member_list_find(list, id) && list->count == ENGINE_MEMBERS_MAX)
        return ST_DAMAGED;
    struct engine_member *member = member_dup(&(struct engine_member){
        .id = id,
        .learner = stored.is_learner,
        .peer_urls = stored.peer_urls,
        .peer_url_count = stored.peer_urls_count,
    });
    if (!member)
        return ST_NOMEM;
    member_list_put(list, member);
    return ST_OK;
}

void local_members_open(struct member_list *list, uint64_t self, const struct slice *peer_urls,
                        size_t peer_url_count)
{
    list->self = self;
    if (member_list_find(list, self))
        return;
    struct engine_member *member = member_dup(&(struct engine_member){
        .id = self,
        .peer_urls = peer_urls,
        .peer_url_count = peer_url_count,
    });
    if (!member)
        abort();
    member_list_put(list, member);
}

static enum status write_row(struct applier *applier, const struct engine_member *member,
                             bool deleted)
{
    AUTO(buf_fini) struct buf value = {0};
    uint64_t id_be = htobe64(member->id);
    if (!deleted)
        TRY(pb_append(&pb_member_table,
                      &(struct pb_member){
                          .id = member->id,
                          .is_learner = member->learner,
                          .peer_urls = (struct slice *)member->peer_urls, /* only read */
                          .peer_urls_count = member->peer_url_count,
                      },
                      &value));
    struct row row = {
        .table = ROW_MEMBER,
        .deleted = deleted,
        .key = slice_of(&id_be, sizeof(id_be)),
        .value = buf_slice(&value),
    };
    return applier_rows(applier, &row, 1, NULL, 0, NULL);
}

static void member_free(struct engine_member *member)
{
    free(member);
}
DEFINE_CLEANUP(struct engine_member *, member_free)

static enum status write_member(struct member_list *list, struct applier *applier,
                                const struct engine_members *change)
{
    struct engine_member after = member_list_after(list, change);
    AUTO(member_freep) struct engine_member *member = member_dup(&after);
    if (!member)
        return ST_NOMEM;
    TRY(write_row(applier, member, false));
    member_list_put(list, TAKE(member));
    return ST_OK;
}

static enum status change(struct member_list *list, struct applier *applier,
                          const struct engine_members *members)
{
    TRY(member_list_allows(list, members));
    if (members->call != ENGINE_MEMBER_REMOVE)
        return write_member(list, applier, members);
    TRY(write_row(applier, &members->member, true));
    member_list_drop(list, members->member.id);
    return ST_OK;
}

enum status local_members_execute(struct member_list *list, struct applier *applier,
                                  struct engine_members *members)
{
    if (members->call != ENGINE_MEMBER_LIST)
        TRY(change(list, applier, members));
    return member_list_copy(list, members);
}
