#include "engine/member_list.h"

#include <stdlib.h>

void member_list_fini(struct member_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->members[i]);
    list->count = 0;
}

void member_list_check(const struct member_list *list)
{
    assert(list->count <= COUNT_OF(list->members));
    for (size_t i = 1; i < list->count; i++)
        assert(list->members[i - 1]->id < list->members[i]->id);
}

/* -- Searching -- */

/* Its index, or where it belongs. */
static size_t place_of(const struct member_list *list, uint64_t id)
{
    size_t at = 0;
    while (at < list->count && list->members[at]->id < id)
        at++;
    return at;
}

const struct engine_member *member_list_find(const struct member_list *list, uint64_t id)
{
    size_t at = place_of(list, id);
    return at < list->count && list->members[at]->id == id ? list->members[at] : NULL;
}

static bool has_url(const struct engine_member *member, struct slice url)
{
    for (size_t i = 0; i < member->peer_url_count; i++) {
        if (slice_equal(member->peer_urls[i], url))
            return true;
    }
    return false;
}

/* Another member has one of its URLs. */
static bool url_is_taken(const struct member_list *list, const struct engine_member *member)
{
    for (size_t i = 0; i < list->count; i++) {
        for (size_t k = 0; k < member->peer_url_count; k++) {
            if (list->members[i]->id != member->id &&
                has_url(list->members[i], member->peer_urls[k]))
                return true;
        }
    }
    return false;
}

struct tally {
    unsigned voters, learners, started; /* started: of the voters */
};

static struct tally count_but(const struct member_list *list, uint64_t left_out)
{
    struct tally tally = {0};
    for (size_t i = 0; i < list->count; i++) {
        const struct engine_member *member = list->members[i];
        tally.learners += member->learner;
        if (member->learner || member->id == left_out)
            continue;
        tally.voters++;
        tally.started += member->id == list->self;
    }
    return tally;
}

static bool is_majority(unsigned started, unsigned voters)
{
    return started >= voters / 2 + 1;
}

/* -- Rules -- */

static enum status allows_urls(const struct engine_member *member)
{
    size_t bytes = 0;
    for (size_t i = 0; i < member->peer_url_count; i++)
        bytes += member->peer_urls[i].len;
    bool fits =
        member->peer_url_count <= ENGINE_PEER_URLS_MAX && bytes <= ENGINE_PEER_URL_BYTES_MAX;
    return fits ? ST_OK : ST_LIMIT;
}

static enum status allows_add(const struct member_list *list, const struct engine_member *member)
{
    struct tally now = count_but(list, 0);
    bool second = now.started == 1 && now.voters == 1; /* which etcd always allows */
    if (!list->lax && !member->learner && !second && !is_majority(now.started, now.voters + 1))
        return ST_MEMBER_NOT_ENOUGH_STARTED;
    if (member_list_find(list, member->id))
        return ST_MEMBER_EXIST;
    if (url_is_taken(list, member))
        return ST_PEER_URL_EXIST;
    if (member->learner && now.learners >= list->learners_max)
        return ST_TOO_MANY_LEARNERS;
    return list->count < ENGINE_MEMBERS_MAX ? allows_urls(member) : ST_LIMIT;
}

static enum status allows_remove(const struct member_list *list, uint64_t id)
{
    const struct engine_member *member = member_list_find(list, id);
    struct tally then = count_but(list, id);
    bool keeps_majority = is_majority(then.started, then.voters) || (member && member->learner);
    if (id == list->self || (!list->lax && !keeps_majority))
        return ST_MEMBER_NOT_ENOUGH_STARTED;
    return member ? ST_OK : ST_MEMBER_NOT_FOUND;
}

static enum status allows_update(const struct member_list *list, const struct engine_member *member)
{
    if (!member_list_find(list, member->id))
        return ST_MEMBER_NOT_FOUND;
    return url_is_taken(list, member) ? ST_PEER_URL_EXIST : allows_urls(member);
}

/* Only this server has the data, and it is not a learner. */
static enum status allows_promote(const struct member_list *list, uint64_t id)
{
    if (!member_list_find(list, id))
        return ST_MEMBER_NOT_FOUND;
    return id == list->self ? ST_MEMBER_NOT_LEARNER : ST_LEARNER_NOT_READY;
}

enum status member_list_allows(const struct member_list *list, const struct engine_members *change)
{
    switch (change->call) {
    case ENGINE_MEMBER_ADD:
        return allows_add(list, &change->member);
    case ENGINE_MEMBER_REMOVE:
        return allows_remove(list, change->member.id);
    case ENGINE_MEMBER_UPDATE:
        return allows_update(list, &change->member);
    case ENGINE_MEMBER_PROMOTE:
        return allows_promote(list, change->member.id);
    case ENGINE_MEMBER_LIST:
        break;
    }
    return ST_OK;
}

/* -- Changes -- */

static size_t block_bytes(const struct engine_member *member)
{
    size_t bytes = sizeof(*member) + member->peer_url_count * sizeof(struct slice);
    for (size_t i = 0; i < member->peer_url_count; i++)
        bytes += member->peer_urls[i].len;
    return bytes;
}

/* One block: the member, its slices, their bytes. */
static void fill_block(struct engine_member *copy, const struct engine_member *member)
{
    struct slice *urls = (struct slice *)(copy + 1);
    uint8_t *bytes = (uint8_t *)(urls + member->peer_url_count);
    *copy = *member;
    copy->peer_urls = urls;
    for (size_t i = 0; i < member->peer_url_count; i++) {
        struct slice url = member->peer_urls[i];
        slice_copy(bytes, url);
        urls[i] = slice_of(bytes, url.len);
        bytes += url.len;
    }
}

struct engine_member *member_dup(const struct engine_member *member)
{
    struct engine_member *copy = malloc(block_bytes(member));
    if (copy)
        fill_block(copy, member);
    return copy;
}

void member_list_put(struct member_list *list, struct engine_member *member)
{
    size_t at = place_of(list, member->id);
    if (at < list->count && list->members[at]->id == member->id) {
        free(list->members[at]);
    } else {
        assert(list->count < COUNT_OF(list->members));
        memmove(&list->members[at + 1], &list->members[at],
                (list->count - at) * sizeof(list->members[0]));
        list->count++;
    }
    list->members[at] = member;
    member_list_check(list);
}

void member_list_drop(struct member_list *list, uint64_t id)
{
    size_t at = place_of(list, id);
    if (at == list->count || list->members[at]->id != id)
        return;
    free(list->members[at]);
    list->count--;
    memmove(&list->members[at], &list->members[at + 1],
            (list->count - at) * sizeof(list->members[0]));
}

struct engine_member member_list_after(const struct member_list *list,
                                       const struct engine_members *change)
{
    struct engine_member member = change->member;
    const struct engine_member *before = member_list_find(list, member.id);
    if (before)
        member.learner = before->learner;
    return member;
}

enum status member_list_change(struct member_list *list, const struct engine_members *change)
{
    TRY(member_list_allows(list, change));
    if (change->call == ENGINE_MEMBER_REMOVE) {
        member_list_drop(list, change->member.id);
        return ST_OK;
    }
    struct engine_member after = member_list_after(list, change);
    struct engine_member *member = member_dup(&after);
    if (!member)
        return ST_NOMEM;
    member_list_put(list, member);
    return ST_OK;
}

enum status member_list_copy(const struct member_list *list, struct engine_members *answer)
{
    struct engine_member *copies =
        arena_calloc(answer->op.arena, list->count, sizeof(struct engine_member));
    if (!copies && list->count)
        return ST_NOMEM;
    for (size_t i = 0; i < list->count; i++) {
        struct engine_member *copy = arena_alloc(answer->op.arena, block_bytes(list->members[i]));
        if (!copy)
            return ST_NOMEM;
        fill_block(copy, list->members[i]);
        copies[i] = *copy;
    }
    answer->list = copies;
    answer->count = list->count;
    return ST_OK;
}
