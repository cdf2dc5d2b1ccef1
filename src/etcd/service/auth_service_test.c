/* The Auth service and the guard of all methods, over a real connection and the fake engine. */
#include "etcd/auth_peer_test.h"

#include "codec/base64.h"
#include "codec/pb/health.pb.h"

#include <stdio.h>

/* -- Calls -- */

static uint32_t enable(struct fixture *f)
{
    struct pb_auth_enable_request request = {0};
    return call(f, PB_AUTH_AUTH_ENABLE_PATH, &pb_auth_enable_request_table, &request);
}

static uint32_t user_add(struct fixture *f, const char *name, const char *password)
{
    struct pb_auth_user_add_request request = {.name = slice_from_text(name),
                                               .password = slice_from_text(password)};
    return call(f, PB_AUTH_USER_ADD_PATH, &pb_auth_user_add_request_table, &request);
}

static uint32_t grant(struct fixture *f, const char *user, const char *role)
{
    struct pb_auth_user_grant_role_request request = {.user = slice_from_text(user),
                                                      .role = slice_from_text(role)};
    return call(f, PB_AUTH_USER_GRANT_ROLE_PATH, &pb_auth_user_grant_role_request_table, &request);
}

static uint32_t login(struct fixture *f, const char *name, const char *password)
{
    struct pb_authenticate_request request = {.name = slice_from_text(name),
                                              .password = slice_from_text(password)};
    return peer_call(&f->peer, PB_AUTH_AUTHENTICATE_PATH, &pb_authenticate_request_table, &request);
}

static uint32_t get(struct fixture *f, const char *key)
{
    struct pb_range_request request = {.key = slice_from_text(key)};
    return call(f, PB_KV_RANGE_PATH, &pb_range_request_table, &request);
}

/* Logs in and sends the token from now on. */
static void log_in(struct fixture *f, const char *name, const char *password)
{
    struct pb_authenticate_response response;
    uint32_t id = login(f, name, password);
    settle(f);
    assert_answers(&f->peer, id, &pb_authenticate_response_table, &response);
    assert_int_equal(response.header->member_id, 9);
    assert_true(response.token.len < sizeof(f->token));
    memcpy(f->token, response.token.ptr, response.token.len);
    f->token[response.token.len] = 0;
    show(f, "token", f->token);
}

/* -- Tests: logging in -- */

static void enabling_needs_a_root_user_with_the_root_role(void **state)
{
    struct fixture *f = *state;
    assert_refused(f, enable(f), ST_ROOT_USER_NOT_EXIST);
    assert_fine(f, user_add(f, "root", "pw"));
    assert_refused(f, enable(f), ST_ROOT_ROLE_NOT_EXIST);
    assert_fine(f, grant(f, "root", "root"));
    assert_fine(f, enable(f));
    assert_refused(f, put(f, "k"), ST_USER_EMPTY);
    log_in(f, "root", "pw");
    assert_fine(f, put(f, "k"));
    assert_fine(f, enable(f)); /* enabling again has no effect */
}

static void failed_login_does_not_reveal_the_reason(void **state)
{
    struct fixture *f = *state;
    uint32_t id = login(f, "anna", "x");
    settle(f);
    assert_refused(f, id, ST_AUTH_NOT_ENABLED);
    assert_fine(f, user_add(f, "bert", "pw"));
    begin(f); /* anna and root have no passwords */
    static const char *const pairs[][2] = {{"bert", "p"},    {"bert", ""}, {"bert", "pw "},
                                           {"nobody", "pw"}, {"", ""},     {"anna", ""}};
    for (size_t i = 0; i < COUNT_OF(pairs); i++) {
        id = login(f, pairs[i][0], pairs[i][1]);
        settle(f);
        assert_refused(f, id, ST_AUTH_FAILED);
    }
    log_in(f, "bert", "pw");
}

static void unknown_user_takes_as_long_as_a_known_one(void **state)
{
    (void)state;
    struct fixture f;
    /* The hasher's thread does not run, so its jobs stay in the queue. */
    fixture_init(&f, 100, NULL);
    begin(&f);
    uint32_t id = login(&f, "nobody", "pw");
    loop_turn(f.loop, 0);
    peer_pump(&f.peer);
    assert_false(peer_stream(&f.peer, id)->ended);
    start_hasher(&f);
    settle(&f);
    assert_refused(&f, id, ST_AUTH_FAILED);
    fixture_fini(&f);
}

static void waiting_passwords_are_limited(void **state)
{
    (void)state;
    struct fixture f;
    uint32_t ids[HASHER_QUEUE_MAX];
    fixture_init(&f, 100, NULL);
    begin(&f);
    for (size_t i = 0; i < COUNT_OF(ids); i++)
        ids[i] = login(&f, "nobody", "pw");
    assert_refused(&f, login(&f, "nobody", "pw"), ST_REQUEST_TOO_MANY_REQUESTS);
    peer_reset(&f.peer, ids[0]);
    peer_reset(&f.peer, ids[1]);
    start_hasher(&f);
    settle(&f);
    for (size_t i = 2; i < COUNT_OF(ids); i++)
        assert_refused(&f, ids[i], ST_AUTH_FAILED);
    fixture_fini(&f);
}

static void disconnect_during_hashing_leaks_nothing(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 100, NULL);
    begin(&f);
    login(&f, "nobody", "pw");
    be(&f, "root");
    struct pb_auth_user_add_request request = {.name = SLICE_LITERAL("new")};
    peer_call(&f.peer, PB_AUTH_USER_ADD_PATH, &pb_auth_user_add_request_table, &request);
    fixture_fini(&f); /* frees the connection first */
}

/* The password was right before a change of the users: the user is read again, and the token is for
 * the new state. */
static void change_during_a_login_is_seen(void **state)
{
    (void)state;
    struct fixture f;
    struct pb_authenticate_response response;
    fixture_init(&f, 100, NULL);
    begin(&f);
    uint8_t hash[AUTH_HASH_BYTES], salt[AUTH_SALT_BYTES] = {0};
    assert_int_equal(auth_password_hash(SLICE_LITERAL("pw"), salt, 4, hash), ST_OK);
    change(&f, (struct engine_auth){.call = ENGINE_AUTH_USER_ADD,
                                    .user = SLICE_LITERAL("bert"),
                                    .hash = slice_of(hash, sizeof(hash))});
    uint32_t id = login(&f, "bert", "pw");
    change(&f, (struct engine_auth){.call = ENGINE_AUTH_ROLE_ADD, .role = SLICE_LITERAL("other")});
    uint32_t gone = login(&f, "bert", "pw");
    start_hasher(&f);
    settle(&f);
    assert_answers(&f.peer, id, &pb_authenticate_response_table, &response);
    assert_answers(&f.peer, gone, &pb_authenticate_response_table, &response);
    fixture_fini(&f);
}

static void long_passwords_and_those_with_nul_are_refused(void **state)
{
    struct fixture *f = *state;
    char password[74];
    memset(password, 'x', 73);
    password[73] = 0;
    assert_fails(&f->peer, user_add(f, "u", password), GRPC_UNKNOWN,
                 "bcrypt: password length exceeds 72 bytes");
    password[72] = 0;
    assert_fine(f, user_add(f, "u", password));
    struct pb_auth_user_add_request request = {.name = SLICE_LITERAL("n"),
                                               .password = SLICE_LITERAL("a\0b")};
    assert_fails(&f->peer,
                 call(f, PB_AUTH_USER_ADD_PATH, &pb_auth_user_add_request_table, &request),
                 GRPC_INVALID_ARGUMENT, "vigil: a password cannot have a NUL byte");
}

static uint32_t change_password(struct fixture *f, struct slice password, struct slice hashed)
{
    struct pb_auth_user_change_password_request request = {
        .name = SLICE_LITERAL("bert"), .password = password, .hashed_password = hashed};
    return call(f, PB_AUTH_USER_CHANGE_PASSWORD_PATH, &pb_auth_user_change_password_request_table,
                &request);
}

static void password_can_be_changed_by_its_hash(void **state)
{
    struct fixture *f = *state;
    uint8_t hash[AUTH_HASH_BYTES], salt[AUTH_SALT_BYTES] = {1}, text[128];
    assert_int_equal(auth_password_hash(SLICE_LITERAL("third"), salt, 4, hash), ST_OK);
    base64_encode(slice_of(hash, sizeof(hash)), text);
    struct slice hashed = slice_of(text, base64_encoded_len(sizeof(hash)));
    assert_fine(f, user_add(f, "bert", "first"));
    begin(f);
    be(f, "root");
    assert_fine(f, change_password(f, SLICE_LITERAL("second"), hashed)); /* the hash is ignored */
    log_in(f, "bert", "second");
    be(f, "root");
    assert_fine(f, change_password(f, SLICE_EMPTY, hashed));
    log_in(f, "bert", "third");
    be(f, "root");
    assert_fails(&f->peer, change_password(f, SLICE_EMPTY, SLICE_LITERAL("?")), GRPC_UNKNOWN,
                 "auth: authentication failed, password was given for no password user");
}

/* -- Tests: tokens -- */

static void token_is_found_where_clients_put_it(void **state)
{
    struct fixture *f = *state;
    char bearer[64];
    begin(f);
    assert_refused(f, put(f, "a/1"), ST_USER_EMPTY);
    be(f, "anna");
    assert_fine(f, put(f, "a/1"));
    show(f, "authorization", f->token);
    assert_fine(f, put(f, "a/1"));
    snprintf(bearer, sizeof(bearer), "Bearer %s", f->token);
    show(f, "authorization", bearer);
    assert_fine(f, put(f, "a/1"));
    static const char *const wrong[] = {"", "x", "Bearer x", "abcdefghijklmnop.1"};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        show(f, "token", wrong[i]);
        assert_refused(f, put(f, "a/1"), ST_INVALID_AUTH_TOKEN);
    }
    char longest[1200];
    memset(longest, 'x', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = 0;
    show(f, "token", longest);
    assert_refused(f, put(f, "a/1"), ST_INVALID_AUTH_TOKEN);
}

static void token_stays_valid_while_it_is_used(void **state)
{
    struct fixture *f = *state;
    begin(f);
    be(f, "anna");
    for (int i = 0; i < 4; i++) {
        f->peer.now_ns += TTL_NS - NS_PER_S;
        assert_fine(f, put(f, "a/1"));
    }
    f->peer.now_ns += TTL_NS + 1;
    assert_refused(f, put(f, "a/1"), ST_INVALID_AUTH_TOKEN);
    assert_fine(f, call(f, PB_HEALTH_CHECK_PATH, &pb_auth_status_request_table,
                        &(struct pb_auth_status_request){0}));
}

static uint32_t status(struct fixture *f)
{
    struct pb_auth_status_request request = {0};
    return call(f, PB_AUTH_AUTH_STATUS_PATH, &pb_auth_status_request_table, &request);
}

static void status_needs_no_token_but_refuses_an_invalid_one(void **state)
{
    struct fixture *f = *state;
    struct pb_auth_status_response response;
    assert_answers(&f->peer, status(f), &pb_auth_status_response_table, &response);
    assert_false(response.enabled);
    assert_int_equal(response.auth_revision, 1);
    begin(f);
    assert_answers(&f->peer, status(f), &pb_auth_status_response_table, &response);
    assert_true(response.enabled);
    assert_int_equal(response.auth_revision, 8);
    assert_int_equal(response.header->cluster_id, 7);
    show(f, "token", "x");
    assert_refused(f, status(f), ST_INVALID_AUTH_TOKEN);
}

/* A cached token is not valid longer than the token itself. */
static void change_revokes_the_affected_tokens(void **state)
{
    struct fixture *f = *state;
    struct pb_auth_user_delete_request bert = {.name = SLICE_LITERAL("bert")};
    struct pb_auth_disable_request disable = {0};
    char root[AUTH_TOKEN_ROOM];
    assert_fine(f, user_add(f, "bert", "first"));
    begin(f);
    auth_token(f->config.issuer, "root", f->peer.now_ns, root);
    be(f, "bert");
    assert_refused(f, put(f, "a/1"), ST_PERMISSION_DENIED);
    show(f, "token", root);
    assert_fine(f, change_password(f, SLICE_LITERAL("second"), SLICE_EMPTY));
    show(f, "token", f->token);
    assert_refused(f, put(f, "a/1"), ST_INVALID_AUTH_TOKEN);
    log_in(f, "bert", "second");
    show(f, "token", root);
    assert_fine(f, call(f, PB_AUTH_USER_DELETE_PATH, &pb_auth_user_delete_request_table, &bert));
    show(f, "token", f->token);
    assert_refused(f, put(f, "a/1"), ST_INVALID_AUTH_TOKEN);
    be(f, "anna");
    assert_fine(f, put(f, "a/1"));
    show(f, "token", root);
    assert_fine(f, call(f, PB_AUTH_AUTH_DISABLE_PATH, &pb_auth_disable_request_table, &disable));
    show(f, "token", f->token);
    assert_fine(f, put(f, "elsewhere")); /* the token is not checked */
    assert_fine(f, enable(f));
    assert_refused(f, put(f, "a/1"), ST_INVALID_AUTH_TOKEN);
}

/* -- Tests: certificates -- */

static void certificate_name_is_a_user(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 100, "anna");
    begin(&f);
    assert_fine(&f, put(&f, "a/1"));
    assert_refused(&f, put(&f, "c"), ST_PERMISSION_DENIED);
    show(&f, "token", "x"); /* a token comes before the certificate */
    assert_refused(&f, put(&f, "a/1"), ST_INVALID_AUTH_TOKEN);
    be(&f, "root");
    assert_fine(&f, put(&f, "c"));
    /* A gateway shows its own certificate for the requests of its clients. */
    show(&f, "grpcgateway-accept", "*/*");
    assert_refused(&f, put(&f, "a/1"), ST_USER_EMPTY);
    show(&f, NULL, NULL);
    f.config.names_from_certificates = false;
    assert_refused(&f, put(&f, "a/1"), ST_USER_EMPTY);
    fixture_fini(&f);
}

/* CVE-2018-16886: the name in a certificate is not enough for methods that need root, nor for any
 * other if it is not the name of a user. */
static void certificate_of_an_unknown_user_permits_nothing(void **state)
{
    (void)state;
    struct fixture f;
    struct pb_status_request request = {0};
    fixture_init(&f, 100, "unknown");
    assert_fine(&f, put(&f, "k"));
    begin(&f);
    assert_refused(&f, put(&f, "a/1"), ST_PERMISSION_DENIED);
    assert_refused(&f, enable(&f), ST_USER_NOT_FOUND);
    assert_refused(&f, call(&f, PB_MAINTENANCE_STATUS_PATH, &pb_status_request_table, &request),
                   ST_PERMISSION_DENIED);
    fixture_fini(&f);
}

/* -- Tests: the guard -- */

/* CVE-2026-33413 and similar errors: every method checks permissions before it answers. */
static void no_method_is_answered_without_a_user(void **state)
{
    struct fixture *f = *state;
    static const char *const open[] = {PB_AUTH_AUTH_STATUS_PATH, PB_AUTH_AUTHENTICATE_PATH,
                                       PB_HEALTH_CHECK_PATH, PB_HEALTH_WATCH_PATH,
                                       PB_WATCH_WATCH_PATH /* each watch is refused */};
    size_t count, refused = 0;
    const struct grpc_row *rows = grpc_services_rows(etcd_api_services(f->peer.api), &count);
    begin(f);
    for (size_t i = 0; i < count; i++) {
        bool is_open = false;
        for (size_t k = 0; k < COUNT_OF(open); k++)
            is_open |= slice_is(rows[i].path, open[k]);
        if (is_open)
            continue;
        uint32_t id = peer_call_bytes(&f->peer, (const char *)rows[i].path.ptr,
                                      SLICE_LITERAL("3.7"), SLICE_EMPTY);
        settle(f);
        assert_refused(f, id, ST_USER_EMPTY);
        refused++;
    }
    assert_true(refused > 35);
}

/* And no call of root fails because a service forgot to give the engine its principal. */
static void root_may_call_every_method(void **state)
{
    struct fixture *f = *state;
    size_t count;
    const struct grpc_row *rows = grpc_services_rows(etcd_api_services(f->peer.api), &count);
    begin(f);
    be(f, "root");
    for (size_t i = 0; i < count; i++) {
        /* The first field is a name or an id, with which most methods reach the engine. */
        static const char *const messages[] = {"\x0a\x01k", "\x08\x01"};
        for (size_t k = 0; k < COUNT_OF(messages); k++) {
            bool nameless = k == 1 && slice_is(rows[i].path, PB_AUTH_USER_ADD_PATH);
            if (nameless || slice_is(rows[i].path, PB_AUTH_AUTH_DISABLE_PATH))
                continue;
            uint32_t id = peer_call_bytes(&f->peer, (const char *)rows[i].path.ptr,
                                          SLICE_LITERAL("3.7"), slice_from_text(messages[k]));
            settle(f);
            const struct peer_stream *stream = peer_stream(&f->peer, id);
            if (stream->code == GRPC_PERMISSION_DENIED ||
                strcmp(stream->text, status_text(ST_USER_EMPTY)) == 0)
                fail_msg("%s: %s", (const char *)rows[i].path.ptr, stream->text);
            if (!stream->ended)
                peer_reset(&f->peer, id);
        }
    }
}

static void user_has_the_permissions_of_its_roles(void **state)
{
    struct fixture *f = *state;
    struct pb_auth_user_get_request anna = {.name = SLICE_LITERAL("anna")},
                                    root = {.name = SLICE_LITERAL("root")};
    struct pb_auth_user_get_response user;
    struct pb_auth_role_get_request writer = {.role = SLICE_LITERAL("writer")};
    struct pb_auth_role_get_response role;
    struct pb_auth_user_list_request list = {0};
    begin(f);
    be(f, "anna");
    assert_fine(f, get(f, "r"));
    assert_fine(f, get(f, "a/"));
    assert_refused(f, put(f, "r"), ST_PERMISSION_DENIED);
    assert_refused(f, get(f, "b"), ST_PERMISSION_DENIED);
    assert_answers(&f->peer, call(f, PB_AUTH_USER_GET_PATH, &pb_auth_user_get_request_table, &anna),
                   &pb_auth_user_get_response_table, &user);
    assert_int_equal(user.roles_count, 1);
    assert_refused(f, call(f, PB_AUTH_USER_GET_PATH, &pb_auth_user_get_request_table, &root),
                   ST_PERMISSION_DENIED);
    assert_answers(&f->peer,
                   call(f, PB_AUTH_ROLE_GET_PATH, &pb_auth_role_get_request_table, &writer),
                   &pb_auth_role_get_response_table, &role);
    assert_int_equal(role.perm_count, 2);
    assert_true(slice_is(role.perm[0].range_end, "b"));
    assert_refused(f, call(f, PB_AUTH_USER_LIST_PATH, &pb_auth_user_list_request_table, &list),
                   ST_PERMISSION_DENIED);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(enabling_needs_a_root_user_with_the_root_role),
        TEST(failed_login_does_not_reveal_the_reason),
        cmocka_unit_test(unknown_user_takes_as_long_as_a_known_one),
        cmocka_unit_test(waiting_passwords_are_limited),
        cmocka_unit_test(disconnect_during_hashing_leaks_nothing),
        cmocka_unit_test(change_during_a_login_is_seen),
        TEST(long_passwords_and_those_with_nul_are_refused),
        TEST(password_can_be_changed_by_its_hash),
        TEST(token_is_found_where_clients_put_it),
        TEST(token_stays_valid_while_it_is_used),
        TEST(status_needs_no_token_but_refuses_an_invalid_one),
        TEST(change_revokes_the_affected_tokens),
        cmocka_unit_test(certificate_name_is_a_user),
        cmocka_unit_test(certificate_of_an_unknown_user_permits_nothing),
        TEST(no_method_is_answered_without_a_user),
        TEST(root_may_call_every_method),
        TEST(user_has_the_permissions_of_its_roles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
