/*
 * Reviews because a role or binding has changed. One that belongs to a namespace concerns the
 * rights there, and any other one all rights.
 *
 *     change ──► (a pause since the last round) ──► round: reviews of all of them
 *                                                      └──► 5 s ──► a second round
 *
 * The pause grows with the number of rights, so that roles that change all the time cause a limited
 * number of reviews, and has a limit, so that a right that was taken away is not used for long
 * because of changes elsewhere.
 */
#include "tier/rights/rights_private.h"

#include <stdlib.h>

enum {
    ASKED_PER_TURN = 500, /* rights that a round includes in one turn */
    /* Another kube-apiserver than the one that reported a change may have been asked, and know it a
     * little later: there is a second round. */
    ROUNDS = 2,
};

#define ROUND_NS_MIN (1 * NS_PER_S)
#define ROUND_NS_MAX (10 * NS_PER_S)
#define ROUND_NS_PER_RIGHT (5 * NS_PER_MS)
#define SECOND_ROUND_NS (5 * NS_PER_S)

static struct slice name_of(const void *value)
{
    const struct tier_namespace *namespace = value;
    return slice_of(namespace->name, namespace->name_bytes);
}

/* -- Rounds -- */

static void on_walk(struct deferred *deferred)
{
    struct tier_rounds *rounds = CONTAINER_OF(deferred, struct tier_rounds, walk);
    for (size_t n = 0; !list_empty(&rounds->members); n++) {
        struct tier_member *member =
            LIST_ENTRY(rounds->members.next, struct tier_member, in_rounds);
        if (member->round == rounds->round)
            return;
        if (n == ASKED_PER_TURN) {
            loop_defer(rounds->rights->loop, &rounds->walk);
            return;
        }
        list_remove(&member->in_rounds);
        list_push_back(&rounds->members, &member->in_rounds);
        member->round = rounds->round;
        tier_right_include(member->right);
    }
}

static int64_t gap_of(const struct tier_rounds *rounds)
{
    int64_t gap_ns = (int64_t)rounds->count * ROUND_NS_PER_RIGHT;
    if (gap_ns > ROUND_NS_MAX)
        return ROUND_NS_MAX;
    return gap_ns > ROUND_NS_MIN ? gap_ns : ROUND_NS_MIN;
}

static void set_next(struct tier_rounds *rounds, int64_t gap_ns)
{
    struct loop *loop = rounds->rights->loop;
    int64_t at_ns = rounds->round ? clock_add(rounds->began_ns, gap_ns) : 0;
    loop_timer_set(loop, &rounds->next, at_ns > loop_now_ns(loop) ? at_ns : loop_now_ns(loop));
}

static void on_next(struct timer *timer)
{
    struct tier_rounds *rounds = CONTAINER_OF(timer, struct tier_rounds, next);
    rounds->wanted--;
    rounds->round++;
    rounds->began_ns = loop_now_ns(rounds->rights->loop);
    loop_defer(rounds->rights->loop, &rounds->walk);
    int64_t gap_ns = gap_of(rounds);
    if (rounds->wanted)
        set_next(rounds, gap_ns > SECOND_ROUND_NS ? gap_ns : SECOND_ROUND_NS);
}

static void want(struct tier_rounds *rounds)
{
    if (list_empty(&rounds->members))
        return;
    rounds->wanted = ROUNDS;
    set_next(rounds, gap_of(rounds));
}

static size_t slot_of(const struct tier_rights *rights, struct slice namespace)
{
    return hash_map_hash(&rights->namespaces, namespace) % TIER_CHANGES_IN;
}

uint64_t tier_rights_changes(const struct tier_rights *rights, struct slice namespace)
{
    uint64_t in = namespace.len ? rights->changes_in[slot_of(rights, namespace)] : 0;
    return rights->changes + in;
}

void tier_rights_changed(struct tier_rights *rights)
{
    rights->changes++;
    want(&rights->standing);
}

void tier_rights_changed_in(struct tier_rights *rights, struct slice name)
{
    struct tier_namespace *namespace = hash_map_get(&rights->namespaces, name);
    rights->changes_in[slot_of(rights, name)]++;
    if (namespace)
        want(&namespace->rounds);
}

/* -- Members -- */

static void rounds_init(struct tier_rounds *rounds, struct tier_rights *rights)
{
    rounds->rights = rights;
    list_init(&rounds->members);
    rounds->next.fn = on_next;
    rounds->walk.fn = on_walk;
}

static void rounds_fini(struct tier_rounds *rounds)
{
    assert(list_empty(&rounds->members) && !rounds->count);
    loop_timer_cancel(rounds->rights->loop, &rounds->next);
    loop_defer_cancel(&rounds->walk);
}

/* A round that is under way need not include it. */
static void add_member(struct tier_rounds *rounds, struct tier_member *member)
{
    list_push_back(&rounds->members, &member->in_rounds);
    member->round = rounds->round;
    rounds->count++;
}

static void remove_member(struct tier_rounds *rounds, struct tier_member *member)
{
    list_remove(&member->in_rounds);
    rounds->count--;
}

/* NULL: no memory. */
static struct tier_namespace *find_or_add(struct tier_rights *rights, struct slice name)
{
    void *replaced;
    struct tier_namespace *namespace = hash_map_get(&rights->namespaces, name);
    if (namespace)
        return namespace;
    namespace = calloc(1, sizeof(*namespace) + name.len);
    if (!namespace)
        return NULL;
    namespace->name_bytes = name.len;
    slice_copy(namespace->name, name);
    rounds_init(&namespace->rounds, rights);
    if (hash_map_put(&rights->namespaces, namespace, &replaced) == ST_OK)
        return namespace;
    free(namespace);
    return NULL;
}

enum status tier_rounds_join(struct tier_right *right)
{
    struct tier_rights *rights = right->rights;
    struct slice name = right->wish->access.namespace;
    if (name.len && !(right->namespace = find_or_add(rights, name)))
        return ST_NOMEM;
    add_member(&rights->standing, &right->in_all);
    if (right->namespace)
        add_member(&right->namespace->rounds, &right->in_namespace);
    return ST_OK;
}

void tier_rounds_leave(struct tier_right *right)
{
    struct tier_rights *rights = right->rights;
    struct tier_namespace *namespace = TAKE(right->namespace);
    remove_member(&rights->standing, &right->in_all);
    if (!namespace)
        return;
    remove_member(&namespace->rounds, &right->in_namespace);
    if (namespace->rounds.count)
        return;
    hash_map_remove(&rights->namespaces, name_of(namespace));
    rounds_fini(&namespace->rounds);
    free(namespace);
}

/* -- Life -- */

void tier_rounds_init(struct tier_rights *rights)
{
    rounds_init(&rights->standing, rights);
    hash_map_init(&rights->namespaces, name_of, random_u64(&rights->random));
}

void tier_rounds_fini(struct tier_rights *rights)
{
    assert(!rights->namespaces.count);
    rounds_fini(&rights->standing);
    hash_map_fini(&rights->namespaces);
}

static void check(const struct tier_rounds *rounds)
{
    const struct tier_member *member;
    size_t count = 0;
    uint64_t round = 0;
    LIST_FOREACH (member, &rounds->members, in_rounds) {
        assert(member->round >= round && member->round <= rounds->round);
        round = member->round;
        count++;
    }
    assert(count == rounds->count);
}

void tier_rounds_check(const struct tier_rights *rights)
{
    const struct tier_namespace *namespace;
    size_t count = 0;
    hash_map_check(&rights->namespaces);
    check(&rights->standing);
    MAP_FOREACH (namespace, &rights->namespaces) {
        assert(namespace->rounds.count);
        check(&namespace->rounds);
        count += namespace->rounds.count;
    }
    assert(count <= rights->standing.count);
}
