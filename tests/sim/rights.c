#include "rights.h"

#include "actors.h"
#include "coverage.h"
#include "history.h"
#include "trace.h"

#include <string.h>

/* After this time a change without an answer is not made any more. */
#define LATE_NS (15 * NS_PER_S)

static struct {
    struct {
        bool granted, changing;
        bool uncertain;
        int64_t uncertain_since_ns;
        int64_t changed_ns;  /* when the last change was over */
        uint64_t generation; /* grows with every change */
    } all[RIGHT_ALWAYS];
} rights;

static const vigil_permission *room(char name)
{
    static char key[3], end[3];
    static vigil_permission permission;
    key[0] = end[0] = name;
    key[1] = '/';
    end[1] = '0';
    permission = (vigil_permission){
        .type = VIGIL_PERMISSION_READ_WRITE, .key = vigil_text(key), .range_end = vigil_text(end)};
    return &permission;
}

static void must_succeed(vigil_call *call)
{
    if (vigil_call_run(call) != VIGIL_OK)
        violation("a call fails although nothing is wrong: %s", vigil_call_error(call)->text);
    vigil_call_free(call);
}

void rights_begin(vigil_client *client)
{
    memset(&rights, 0, sizeof(rights));
    must_succeed(vigil_user_add(client, "root", "root"));
    must_succeed(vigil_user_add(client, "alice", "alice"));
    must_succeed(vigil_role_add(client, "room"));
    must_succeed(vigil_role_add(client, "guests"));
    must_succeed(vigil_role_grant(client, "room", room('a')));
    must_succeed(vigil_role_grant(client, "guests", room('c')));
    must_succeed(vigil_role_add(client, "root"));
    must_succeed(vigil_user_grant_role(client, "root", "root"));
    must_succeed(vigil_user_grant_role(client, "alice", "room"));
    must_succeed(vigil_auth_enable(client));
}

/* -- Changes -- */

/* What the calls of a change have done so far. */
enum outcome { MADE, NOT_MADE, UNKNOWN };

static enum outcome run(vigil_call *call)
{
    int code = vigil_call_run(call);
    enum outcome outcome = code == VIGIL_OK                                   ? MADE
                           : vigil_call_error(call)->outcome == VIGIL_UNKNOWN ? UNKNOWN
                                                                              : NOT_MADE;
    vigil_call_free(call);
    return outcome;
}

/* Two calls: only if both were made it is clear. */
static enum outcome add_bob(vigil_client *root)
{
    enum outcome outcome = run(vigil_user_add(root, "bob", "bob"));
    if (outcome != MADE)
        return outcome;
    return run(vigil_user_grant_role(root, "bob", "room")) == MADE ? MADE : UNKNOWN;
}

static enum outcome change(vigil_client *root, enum right right, bool grant)
{
    switch (right) {
    case RIGHT_ROOM_B:
        return run(grant ? vigil_role_grant(root, "room", room('b'))
                         : vigil_role_revoke(root, "room", room('b')->key, room('b')->range_end));
    case RIGHT_ROOM_C:
        return run(grant ? vigil_user_grant_role(root, "alice", "guests")
                         : vigil_user_revoke_role(root, "alice", "guests"));
    default:
        return grant ? add_bob(root) : run(vigil_user_delete(root, "bob"));
    }
}

static const char *const names[] = {"room b", "room c", "bob"};

void rights_change(vigil_client *root, enum right right)
{
    if (rights.all[right].changing)
        return;
    coverage_add(COVERAGE_RIGHT);
    bool late = actors_now() - rights.all[right].uncertain_since_ns > LATE_NS;
    bool was_certain = !rights.all[right].uncertain;
    bool grant = !rights.all[right].granted;
    rights.all[right].changing = true;
    rights.all[right].generation++;
    enum outcome outcome = change(root, right, grant);
    trace_line("right %s %s: %s", names[right], grant ? "granted" : "revoked",
               outcome == MADE       ? "ok"
               : outcome == NOT_MADE ? "refused"
                                     : "unknown");
    rights.all[right].changing = false;
    rights.all[right].changed_ns = actors_now();
    rights.all[right].generation++;
    if (outcome != NOT_MADE)
        rights.all[right].granted = grant;
    if (outcome == UNKNOWN) {
        rights.all[right].uncertain = true;
        rights.all[right].uncertain_since_ns = actors_now();
    } else if (outcome == MADE && (was_certain || late)) {
        rights.all[right].uncertain = false;
    }
}

/* -- Requests -- */

enum right rights_for(const char *user, const char *key, const char *end)
{
    bool one_room = !*end || (end[0] == key[0] && strcmp(end + 1, "0") == 0);
    if (!user || strcmp(user, "root") == 0)
        return RIGHT_ALWAYS;
    if (!one_room)
        return RIGHT_NEVER;
    if (strcmp(user, "bob") == 0)
        return key[0] == 'a' ? RIGHT_BOB : key[0] == 'b' ? RIGHT_EITHER : RIGHT_NEVER;
    return key[0] == 'a' ? RIGHT_ALWAYS : key[0] == 'b' ? RIGHT_ROOM_B : RIGHT_ROOM_C;
}

struct rights_view rights_look(enum right right, int64_t lag_ns)
{
    struct rights_view view = {.right = right};
    if (right < RIGHT_ALWAYS) {
        view.generation = rights.all[right].generation;
        if (rights.all[right].changing || rights.all[right].uncertain ||
            actors_now() < rights.all[right].changed_ns + lag_ns)
            view.right = RIGHT_EITHER;
    }
    return view;
}

static bool is_certain(const struct rights_view *view)
{
    return view->right < RIGHT_ALWAYS && rights.all[view->right].generation == view->generation;
}

bool rights_granted(const struct rights_view *view)
{
    return view->right == RIGHT_ALWAYS || (is_certain(view) && rights.all[view->right].granted);
}

bool rights_refused(const struct rights_view *view)
{
    return view->right == RIGHT_NEVER || (is_certain(view) && !rights.all[view->right].granted);
}
