/* Users, members, maintenance, locks and elections. */
#include "suite.h"

#include <unistd.h>

static void users_and_roles(void)
{
    vigil_client *client = new_client();
    vigil_permission permission = {VIGIL_PERMISSION_READ_WRITE, vigil_text("a"), vigil_text("b")};
    must(vigil_user_add(client, "anna", "pass"));
    must(vigil_user_add(client, "cert", NULL));
    must(vigil_role_add(client, "writer"));
    must(vigil_role_grant(client, "writer", &permission));
    must(vigil_user_grant_role(client, "anna", "writer"));
    must(vigil_user_change_password(client, "anna", "other"));

    vigil_call *call = vigil_user_get(client, "anna");
    CHECK(vigil_call_run(call) == VIGIL_OK);
    CHECK(vigil_names_result(call)->name_count == 1);
    CHECK(bytes_equal(vigil_names_result(call)->names[0], "writer"));
    CHECK(vigil_role_result(call) == NULL);
    vigil_call_free(call);
    call = vigil_user_list(client);
    CHECK(vigil_call_run(call) == VIGIL_OK && vigil_names_result(call)->name_count == 2);
    vigil_call_free(call);
    call = vigil_role_get(client, "writer");
    CHECK(vigil_call_run(call) == VIGIL_OK);
    const vigil_role_response *role = vigil_role_result(call);
    CHECK(role->permission_count == 1);
    CHECK(role->permissions[0].type == VIGIL_PERMISSION_READ_WRITE);
    CHECK(bytes_equal(role->permissions[0].range_end, "b"));
    vigil_call_free(call);

    must(vigil_role_revoke(client, "writer", vigil_text("a"), vigil_text("b")));
    must(vigil_user_revoke_role(client, "anna", "writer"));
    must(vigil_role_delete(client, "writer"));
    must(vigil_user_delete(client, "anna"));
    call = vigil_user_get(client, "anna");
    vigil_call_run(call);
    CHECK_CODE(call, VIGIL_ERROR_USER_NOT_FOUND);
    vigil_call_free(call);
    call = vigil_role_list(client);
    CHECK(vigil_call_run(call) == VIGIL_OK && vigil_names_result(call)->name_count == 0);
    vigil_call_free(call);
    call = vigil_auth_status(client);
    if (vigil_call_run(call) != VIGIL_ERROR_UNIMPLEMENTED) /* etcd 3.4 has no such call */
        CHECK(!vigil_auth_status_result(call)->enabled);
    vigil_call_free(call);
    vigil_client_free(client);
}

static void authentication_is_enabled_and_disabled(void)
{
    vigil_options options;
    vigil_client *client = new_client(), *root;
    must(vigil_user_add(client, "root", "secret"));
    must(vigil_role_add(client, "root"));
    must(vigil_user_grant_role(client, "root", "root"));
    must(vigil_auth_enable(client));
    vigil_call *call = vigil_get(client, vigil_text("k"));
    vigil_call_run(call);
    CHECK(vigil_call_error(call)->code != VIGIL_OK);
    vigil_call_free(call);
    default_options(&options);
    options.user = "root";
    options.password = "secret";
    CHECK(vigil_client_new(&options, &root, NULL) == VIGIL_OK);
    put(root, "k", "v");
    must(vigil_auth_disable(root));
    put(client, "k", "w");
    put(root, "k", "x"); /* its token is not needed any more */
    vigil_client_free(root);
    vigil_client_free(client);
}

static void check_members(vigil_client *client)
{
    vigil_call *call = vigil_member_list(client, 1);
    CHECK(vigil_call_run(call) == VIGIL_OK);
    const vigil_members_response *response = vigil_members_result(call);
    CHECK((int)response->member_count == member_count());
    size_t answered = 0;
    for (size_t i = 0; i < response->member_count; i++) {
        CHECK(response->members[i].client_url_count == 1);
        answered += response->members[i].id == vigil_call_header(call)->member_id;
    }
    CHECK(answered == 1);
    vigil_call_free(call);
}

static void members_and_maintenance(void)
{
    vigil_client *client = new_client();
    int64_t revision = put(client, "k", "v");
    check_members(client);
    vigil_call *call = vigil_status(client);
    CHECK(vigil_call_run(call) == VIGIL_OK);
    CHECK(vigil_status_result(call)->version.size > 2 && vigil_status_result(call)->leader != 0);
    vigil_call_free(call);
    call = vigil_alarm_list(client);
    CHECK(vigil_call_run(call) == VIGIL_OK && vigil_alarms_result(call)->alarm_count == 0);
    vigil_call_free(call);
    uint32_t hash = 0;
    for (int i = 0; i < 2; i++) {
        call = vigil_hash_kv(client, revision);
        CHECK(vigil_call_run(call) == VIGIL_OK);
        CHECK(i == 0 || vigil_hash_kv_result(call)->hash == hash);
        hash = vigil_hash_kv_result(call)->hash;
        vigil_call_free(call);
    }
    call = vigil_defragment(client);
    CHECK(vigil_call_run(call) == VIGIL_OK);
    vigil_call_free(call);
    call = vigil_member_remove(client, 12345);
    vigil_call_run(call);
    CHECK(vigil_call_error(call)->code != VIGIL_OK);
    vigil_call_free(call);
    vigil_client_free(client);
}

static int64_t grant(vigil_client *client)
{
    vigil_call *call = vigil_lease_grant(client, 60, 0);
    CHECK(vigil_call_run(call) == VIGIL_OK);
    int64_t id = vigil_lease_grant_result(call)->id;
    vigil_call_free(call);
    return id;
}

static struct latch locked = LATCH_INIT;

static void note_lock(vigil_call *call, void *user)
{
    (void)user;
    CHECK_CODE(call, VIGIL_OK);
    latch_add(&locked, 1);
}

static void lock_is_held_by_one(void)
{
    vigil_client *client = new_client();
    int64_t first = grant(client), second = grant(client);
    vigil_call *holder = vigil_lock(client, vigil_text("mutex"), first);
    CHECK(vigil_call_run(holder) == VIGIL_OK);
    vigil_call *waiter = vigil_lock(client, vigil_text("mutex"), second);
    CHECK(vigil_call_start(waiter, note_lock, NULL) == VIGIL_OK);
    put(client, "meanwhile", "x");
    usleep(200000);
    CHECK(latch_count(&locked) == 0);
    must(vigil_unlock(client, vigil_lock_result(holder)->key));
    latch_wait(&locked, 1);
    vigil_call_free(holder);
    vigil_call_free(waiter);
    vigil_client_free(client);
}

static void leader_is_elected(void)
{
    vigil_client *client = new_client();
    int64_t first = grant(client), second = grant(client);
    vigil_call *won = vigil_campaign(client, vigil_text("boss"), first, vigil_text("one"));
    CHECK(vigil_call_run(won) == VIGIL_OK);
    const vigil_leader_key *leader = vigil_campaign_result(won)->leader;
    CHECK(leader->lease == first && bytes_equal(leader->name, "boss"));
    vigil_call *next = vigil_campaign(client, vigil_text("boss"), second, vigil_text("two"));
    CHECK(vigil_call_start(next, note_lock, NULL) == VIGIL_OK);
    must(vigil_proclaim(client, leader, vigil_text("still one")));
    vigil_call *call = vigil_leader(client, vigil_text("boss"));
    CHECK(vigil_call_run(call) == VIGIL_OK);
    CHECK(bytes_equal(vigil_leader_result(call)->kv->value, "still one"));
    vigil_call_free(call);
    CHECK(latch_count(&locked) == 0);
    must(vigil_resign(client, leader));
    latch_wait(&locked, 1);
    call = vigil_leader(client, vigil_text("boss"));
    CHECK(vigil_call_run(call) == VIGIL_OK);
    CHECK(bytes_equal(vigil_leader_result(call)->kv->value, "two"));
    vigil_call_free(call);
    vigil_call_free(won);
    vigil_call_free(next);
    vigil_client_free(client);
}

static void delete_users_and_roles(vigil_client *client)
{
    vigil_call *users = vigil_user_list(client), *roles = vigil_role_list(client);
    char name[64];
    CHECK(vigil_call_run(users) == VIGIL_OK && vigil_call_run(roles) == VIGIL_OK);
    for (size_t i = 0; i < vigil_names_result(users)->name_count; i++) {
        vigil_bytes bytes = vigil_names_result(users)->names[i];
        snprintf(name, sizeof(name), "%.*s", (int)bytes.size, (const char *)bytes.data);
        must(vigil_user_delete(client, name));
    }
    for (size_t i = 0; i < vigil_names_result(roles)->name_count; i++) {
        vigil_bytes bytes = vigil_names_result(roles)->names[i];
        snprintf(name, sizeof(name), "%.*s", (int)bytes.size, (const char *)bytes.data);
        must(vigil_role_delete(client, name));
    }
    vigil_call_free(users);
    vigil_call_free(roles);
}

static size_t count_alarms(vigil_client *client)
{
    vigil_call *call = vigil_alarm_list(client);
    CHECK(vigil_call_run(call) == VIGIL_OK);
    size_t count = vigil_alarms_result(call)->alarm_count;
    vigil_call_free(call);
    return count;
}

/* Returns how many alarms were lowered. */
static size_t lower(vigil_client *client, uint64_t member, int type)
{
    vigil_call *call = vigil_alarm_disarm(client, member, type);
    CHECK(vigil_call_run(call) == VIGIL_OK);
    size_t count = vigil_alarms_result(call)->alarm_count;
    vigil_call_free(call);
    return count;
}

static void alarm_refuses_writes_until_it_is_lowered(void)
{
    vigil_client *client = new_client();
    ask("raise 7 NOSPACE");
    CHECK(count_alarms(client) == 1);
    vigil_call *refused = vigil_put(client, vigil_text("k"), vigil_text("v"), 0);
    vigil_call_run(refused);
    CHECK_CODE(refused, VIGIL_ERROR_NO_SPACE);
    CHECK(vigil_call_error(refused)->outcome == VIGIL_UNKNOWN);
    vigil_call_free(refused);
    CHECK(lower(client, 0, VIGIL_ALARM_NONE) == 0);
    CHECK(lower(client, 8, VIGIL_ALARM_NO_SPACE) == 0);
    CHECK(lower(client, 7, VIGIL_ALARM_CORRUPT) == 0);
    CHECK(count_alarms(client) == 1);
    CHECK(lower(client, 7, VIGIL_ALARM_NO_SPACE) == 1);
    CHECK(count_alarms(client) == 0);
    put(client, "k", "v");
    vigil_client_free(client);
}

void empty_the_store(void)
{
    vigil_client *client = new_client();
    must(vigil_delete_prefix(client, vigil_text("")));
    vigil_call *leases = vigil_lease_list(client);
    CHECK(vigil_call_run(leases) == VIGIL_OK);
    for (size_t i = 0; i < vigil_lease_list_result(leases)->lease_count; i++)
        must(vigil_lease_revoke(client, vigil_lease_list_result(leases)->leases[i].id));
    vigil_call_free(leases);
    delete_users_and_roles(client);
    vigil_client_free(client);
}

const struct suite_test admin_tests[] = {
    {"users_and_roles", users_and_roles},
    {"authentication_is_enabled_and_disabled", authentication_is_enabled_and_disabled},
    {"members_and_maintenance", members_and_maintenance},
    {"alarm_refuses_writes_until_it_is_lowered", alarm_refuses_writes_until_it_is_lowered},
    {"lock_is_held_by_one", lock_is_held_by_one},
    {"leader_is_elected", leader_is_elected},
    {NULL, NULL},
};
