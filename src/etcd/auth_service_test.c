/* The Auth service and the guard before all others, over a real connection and the fake engine. */
#include "etcd/auth_fixture.h"
#include "etcd/peer_calls.h"

#include "codec/base64.h"
#include "codec/pb/health.pb.h"
#include "codec/pb/rpc.pb.h"
#include "engine/hasher.h"

#include <stdio.h>

#define TTL_NS (300 * NS_PER_S)

struct fixture {
    struct peer peer;
    struct etcd_config config;
    struct hasher *hasher;
    bool hashing; /* its thread runs */
    struct loop *loop;
    char token[AUTH_TOKEN_ROOM];
    struct peer_field metadata[3];
};

static void fixture_init(struct fixture *f, unsigned inline_percent, const char *certificate)
{
    struct error error;
    memset(f, 0, sizeof(*f));
    f->hasher = hasher_new();
    assert_int_equal(loop_new(clock_system(), &f->loop), ST_OK);
    f->config = (struct etcd_config){
        .version = "3.7.0",
        .cluster_version = "3.7.0",
        .txn_ops_max = ETCD_TXN_OPS_MAX_DEFAULT,
        .request_bytes_max = 64 * 1024,
        .member_name = "default",
        .hasher = f->hasher,
        .bcrypt_cost = 4,
        .names_from_certificates = true,
    };
    assert_int_equal(auth_issuer_new(&(struct auth_issuer_settings){.simple_ttl_ns = TTL_NS},
                                     &f->config.issuer, &error),
                     ST_OK);
    struct fake_options options = {.seed = 3,
                                   .inline_percent = inline_percent,
                                   .identity = {.cluster_id = 7, .member_id = 9, .raft_term = 2}};
    peer_init_named(&f->peer, &f->config, &options, 1 << 30, 0, certificate);
    etcd_face_set_loop(f->peer.face, f->loop);
}

static void start_hasher(struct fixture *f)
{
    if (!f->hashing)
        assert_int_equal(hasher_start(f->hasher), ST_OK);
    f->hashing = true;
}

static void fixture_fini(struct fixture *f)
{
    struct peer *p = &f->peer;
    wire_connection_free(p->connection);
    while (fake_step(p->engine))
        ;
    start_hasher(f); /* what it still has comes back */
    while (etcd_face_busy(p->face))
        loop_turn(f->loop, NS_PER_MS);
    p->connection = NULL;
    peer_fini(p);
    hasher_free(f->hasher);
    auth_issuer_free(f->config.issuer);
    loop_free(f->loop);
}

static int setup(void **state)
{
    struct fixture *f = malloc(sizeof(*f));
    fixture_init(f, 100, NULL);
    start_hasher(f);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    fixture_fini(*state);
    free(*state);
    return 0;
}

/* Everything is answered that can be: by the engine, and by the hasher's thread. */
static void settle(struct fixture *f)
{
    for (int i = 0; i < 30000 && etcd_face_busy(f->peer.face); i++) {
        (void)fake_step(f->peer.engine);
        loop_turn(f->loop, NS_PER_MS);
    }
    assert_false(etcd_face_busy(f->peer.face));
    peer_pump(&f->peer);
}

/* -- Who calls -- */

static void show(struct fixture *f, const char *name, const char *value)
{
    f->metadata[0] = (struct peer_field){name, value};
    f->metadata[1] = (struct peer_field){0};
    f->peer.metadata = name ? f->metadata : NULL;
}

/* A token of that user from now on; NULL: nobody's. */
static void be(struct fixture *f, const char *user)
{
    if (user)
        auth_token(f->config.issuer, user, f->peer.now_ns, f->token);
    show(f, user ? "token" : NULL, f->token);
}

static void begin(struct fixture *f)
{
    auth_begin(f->peer.engine, f->peer.shard);
}

static void change(struct fixture *f, struct engine_auth auth)
{
    auth_change(f->peer.engine, f->peer.shard, auth);
}

/* -- Calls -- */

static uint32_t call(struct fixture *f, const char *path, const struct pb_message *type,
                     const void *request)
{
    uint32_t id = peer_call(&f->peer, path, type, request);
    settle(f);
    return id;
}

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

static uint32_t put(struct fixture *f, const char *key)
{
    struct pb_put_request request = {.key = slice_from_text(key), .value = SLICE_LITERAL("v")};
    return call(f, PB_KV_PUT_PATH, &pb_put_request_table, &request);
}

static uint32_t get(struct fixture *f, const char *key)
{
    struct pb_range_request request = {.key = slice_from_text(key)};
    return call(f, PB_KV_RANGE_PATH, &pb_range_request_table, &request);
}

static void assert_fine(struct fixture *f, uint32_t id)
{
    assert_string_equal(peer_stream(&f->peer, id)->text, "");
    assert_int_equal(peer_stream(&f->peer, id)->code, GRPC_OK);
}

static void assert_refused(struct fixture *f, uint32_t id, enum status status)
{
    assert_fails(&f->peer, id, status_code(status), status_text(status));
}

/* Logs in and shows the token from now on. */
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

static void enabling_needs_a_root_who_is_root(void **state)
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
    assert_fine(f, enable(f)); /* again: nothing happens */
}

static void who_cannot_log_in_is_not_told_why(void **state)
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

static void user_who_is_not_there_takes_as_long_as_one_who_is(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 100, NULL); /* the hasher's thread does not run: what waits, waits for it */
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

static void passwords_that_wait_are_limited(void **state)
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

static void client_that_leaves_while_its_password_is_hashed_leaves_nothing(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 100, NULL);
    begin(&f);
    login(&f, "nobody", "pw");
    be(&f, "root");
    struct pb_auth_user_add_request request = {.name = SLICE_LITERAL("new")};
    peer_call(&f.peer, PB_AUTH_USER_ADD_PATH, &pb_auth_user_add_request_table, &request);
    fixture_fini(&f); /* its connection goes first */
}

/* The password was right, but for what was: it is looked up again, and the token is for what is. */
static void change_while_somebody_logs_in_is_seen(void **state)
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

static void long_passwords_and_such_with_nul_are_refused(void **state)
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
    assert_fine(f, change_password(f, SLICE_LITERAL("second"), hashed)); /* which does not count */
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

static void token_lives_while_it_is_used(void **state)
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

static void status_is_for_everybody_but_who_shows_a_wrong_token(void **state)
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

/* What is remembered of a token does not outlive it. */
static void change_ends_the_tokens_it_should(void **state)
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
    assert_fine(f, put(f, "elsewhere")); /* nobody looks at it */
    assert_fine(f, enable(f));
    assert_refused(f, put(f, "a/1"), ST_INVALID_AUTH_TOKEN);
}

/* -- Tests: certificates -- */

static void name_of_a_certificate_is_a_user(void **state)
{
    (void)state;
    struct fixture f;
    fixture_init(&f, 100, "anna");
    begin(&f);
    assert_fine(&f, put(&f, "a/1"));
    assert_refused(&f, put(&f, "c"), ST_PERMISSION_DENIED);
    show(&f, "token", "x"); /* what is shown goes first */
    assert_refused(&f, put(&f, "a/1"), ST_INVALID_AUTH_TOKEN);
    be(&f, "root");
    assert_fine(&f, put(&f, "c"));
    /* A gateway shows its own certificate for whoever asks it. */
    show(&f, "grpcgateway-accept", "*/*");
    assert_refused(&f, put(&f, "a/1"), ST_USER_EMPTY);
    show(&f, NULL, NULL);
    f.config.names_from_certificates = false;
    assert_refused(&f, put(&f, "a/1"), ST_USER_EMPTY);
    fixture_fini(&f);
}

/* CVE-2018-16886: the name of a certificate is not enough for what needs root, nor for anything
 * else when it is nobody's. */
static void certificate_of_a_stranger_may_nothing(void **state)
{
    (void)state;
    struct fixture f;
    struct pb_status_request request = {0};
    fixture_init(&f, 100, "stranger");
    assert_fine(&f, put(&f, "k"));
    begin(&f);
    assert_refused(&f, put(&f, "a/1"), ST_PERMISSION_DENIED);
    assert_refused(&f, enable(&f), ST_USER_NOT_FOUND);
    assert_refused(&f, call(&f, PB_MAINTENANCE_STATUS_PATH, &pb_status_request_table, &request),
                   ST_PERMISSION_DENIED);
    fixture_fini(&f);
}

/* -- Tests: the guard -- */

/* CVE-2026-33413 and all like it: whatever a server answers, it asks first. */
static void no_method_is_answered_for_nobody(void **state)
{
    struct fixture *f = *state;
    static const char *const open[] = {PB_AUTH_AUTH_STATUS_PATH, PB_AUTH_AUTHENTICATE_PATH,
                                       PB_HEALTH_CHECK_PATH, PB_HEALTH_WATCH_PATH,
                                       PB_WATCH_WATCH_PATH /* each watch is refused */};
    size_t count, refused = 0;
    const struct grpc_row *rows = grpc_services_rows(etcd_face_services(f->peer.face), &count);
    begin(f);
    for (size_t i = 0; i < count; i++) {
        bool is_open = false;
        for (size_t k = 0; k < COUNT_OF(open); k++)
            is_open |= slice_equal(rows[i].path, slice_from_text(open[k]));
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

/* And whoever may is not refused for what a service forgot to say to the engine. */
static void root_may_call_every_method(void **state)
{
    struct fixture *f = *state;
    size_t count;
    const struct grpc_row *rows = grpc_services_rows(etcd_face_services(f->peer.face), &count);
    begin(f);
    be(f, "root");
    for (size_t i = 0; i < count; i++) {
        /* The first field is a name or an id: most get as far as to the engine with it. */
        static const char *const messages[] = {"\x0a\x01k", "\x08\x01"};
        for (size_t k = 0; k < COUNT_OF(messages); k++) {
            bool nameless =
                k == 1 && slice_equal(rows[i].path, SLICE_LITERAL(PB_AUTH_USER_ADD_PATH));
            if (nameless || slice_equal(rows[i].path, SLICE_LITERAL(PB_AUTH_AUTH_DISABLE_PATH)))
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

static void rights_of_a_user_are_those_of_its_roles(void **state)
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
    assert_true(slice_equal(role.perm[0].range_end, SLICE_LITERAL("b")));
    assert_refused(f, call(f, PB_AUTH_USER_LIST_PATH, &pb_auth_user_list_request_table, &list),
                   ST_PERMISSION_DENIED);
}

/* -- Tests: streams -- */

static uint32_t open_watch(struct fixture *f)
{
    return peer_open(&f->peer, PB_WATCH_WATCH_PATH, SLICE_LITERAL("3.7"));
}

static void create(struct fixture *f, uint32_t id, struct slice key, struct slice end)
{
    struct pb_watch_create_request made = {.key = key, .range_end = end};
    struct pb_watch_request request = {.request_union_case = PB_WATCH_REQUEST_CREATE_REQUEST,
                                       .create_request = &made};
    uint8_t bytes[128];
    size_t size = pb_size(&pb_watch_request_table, &request);
    pb_encode(&pb_watch_request_table, &request, bytes, size);
    peer_send(&f->peer, id, slice_of(bytes, size), false);
}

static void turn(struct fixture *f)
{
    engine_shard_turn_begin(f->peer.shard);
    loop_turn(f->loop, 0);
    engine_shard_turn_end(f->peer.shard);
    peer_pump(&f->peer);
    engine_shard_flushed(f->peer.shard);
}

/* What a watch call has said since `at`: one word a response. */
static const char *said(struct fixture *f, uint32_t id, size_t *at)
{
    static char text[1024];
    struct pb_watch_response r;
    size_t n = 0;
    text[0] = 0;
    while (next_message(&f->peer, id, at, &pb_watch_response_table, &r))
        n += (size_t)snprintf(text + n, sizeof(text) - n, "%lld%s%s%s%.*s%.*s;",
                              (long long)r.watch_id, r.created ? " created" : "",
                              r.canceled ? " canceled" : "", r.cancel_reason.len ? ": " : "",
                              SLICE_ARGS(r.cancel_reason), r.events_count ? 6 : 0, " event");
    return text;
}

#define DENIED "rpc error: code = PermissionDenied desc = etcdserver: permission denied"

static void watch_without_permission_is_refused_in_etcds_words(void **state)
{
    struct fixture *f = *state;
    size_t at = 0;
    begin(f);
    uint32_t id = open_watch(f);
    create(f, id, SLICE_LITERAL("a/1"), SLICE_EMPTY);
    turn(f);
    assert_string_equal(said(f, id, &at), "-1 created canceled: rpc error: code = InvalidArgument "
                                          "desc = etcdserver: user name is empty;");
    show(f, "token", "x");
    id = open_watch(f);
    at = 0;
    create(f, id, SLICE_LITERAL("a/1"), SLICE_EMPTY);
    turn(f);
    assert_string_equal(said(f, id, &at), "-1 created canceled: rpc error: code = Unauthenticated "
                                          "desc = etcdserver: invalid auth token;");
    be(f, "anna");
    id = open_watch(f);
    at = 0;
    create(f, id, SLICE_LITERAL("c"), SLICE_EMPTY);
    create(f, id, SLICE_LITERAL("a/"), SLICE_LITERAL("\0")); /* GHSA-xg4h-6gfc-h4m8 */
    create(f, id, SLICE_LITERAL("r"), SLICE_LITERAL("\0"));
    create(f, id, SLICE_EMPTY, SLICE_LITERAL("\0"));
    create(f, id, SLICE_LITERAL("a/"), SLICE_LITERAL("b"));
    turn(f);
    assert_string_equal(said(f, id, &at),
                        "-1 created canceled: " DENIED ";-1 created canceled: " DENIED
                        ";-1 created canceled: " DENIED ";-1 created canceled: " DENIED
                        ";0 created;");
}

static void watch_ends_when_its_permission_goes(void **state)
{
    struct fixture *f = *state;
    size_t at = 0, roots_at = 0;
    begin(f);
    be(f, "root");
    uint32_t roots = open_watch(f);
    create(f, roots, SLICE_EMPTY, SLICE_LITERAL("\0"));
    be(f, "anna");
    uint32_t id = open_watch(f);
    create(f, id, SLICE_LITERAL("a/"), SLICE_LITERAL("b"));
    create(f, id, SLICE_LITERAL("r"), SLICE_EMPTY);
    turn(f);
    assert_string_equal(said(f, id, &at), "0 created;1 created;");
    change(f, (struct engine_auth){.call = ENGINE_AUTH_ROLE_ADD, .role = SLICE_LITERAL("other")});
    turn(f); /* it has nothing to do with it */
    change(f, (struct engine_auth){.call = ENGINE_AUTH_ROLE_REVOKE,
                                   .role = SLICE_LITERAL("writer"),
                                   .key = SLICE_LITERAL("a/"),
                                   .range_end = SLICE_LITERAL("b")});
    be(f, "root");
    assert_fine(f, put(f, "a/1")); /* written after it: not to be seen */
    assert_fine(f, put(f, "r"));
    turn(f);
    assert_string_equal(said(f, id, &at), "0 canceled: " DENIED ";1 event;");
    change(f, (struct engine_auth){.call = ENGINE_AUTH_USER_DELETE, .user = SLICE_LITERAL("anna")});
    turn(f);
    assert_string_equal(said(f, id, &at), "1 canceled: " DENIED ";");
    assert_false(peer_stream(&f->peer, id)->ended);
    assert_string_equal(said(f, roots, &roots_at), "0 created;0 event;0 event;");
}

static void watch_of_nobody_ends_when_access_is_controlled(void **state)
{
    struct fixture *f = *state;
    size_t at = 0;
    uint32_t id = open_watch(f);
    create(f, id, SLICE_LITERAL("k"), SLICE_EMPTY);
    turn(f);
    begin(f);
    turn(f);
    assert_string_equal(said(f, id, &at), "0 created;0 canceled: " DENIED ";");
}

static void ask_keep_alive(struct fixture *f, uint32_t stream, int64_t id)
{
    struct pb_lease_keep_alive_request request = {.id = id};
    uint8_t bytes[32];
    size_t size = pb_size(&pb_lease_keep_alive_request_table, &request);
    pb_encode(&pb_lease_keep_alive_request_table, &request, bytes, size);
    peer_send(&f->peer, stream, slice_of(bytes, size), false);
}

/* They are woken some at a time; one that is told something meanwhile is asked before it is. */
static void thousands_of_watches_are_asked_again_in_turns(void **state)
{
    enum { COUNT = 1500 };
    struct fixture *f = *state;
    static uint32_t ids[COUNT];
    static size_t at[COUNT];
    size_t turns = 0, ended = 0;
    begin(f);
    be(f, "anna");
    for (size_t i = 0; i < COUNT; i++) {
        ids[i] = open_watch(f);
        at[i] = 0;
        create(f, ids[i], i == COUNT - 1 ? SLICE_LITERAL("a/last") : SLICE_LITERAL("a/1"),
               SLICE_EMPTY);
    }
    turn(f);
    for (size_t i = 0; i < COUNT; i++)
        assert_string_equal(said(f, ids[i], &at[i]), "0 created;");
    change(f, (struct engine_auth){.call = ENGINE_AUTH_USER_DELETE, .user = SLICE_LITERAL("anna")});
    be(f, "root");
    assert_fine(f, put(f, "a/last"));
    turn(f);
    assert_string_equal(said(f, ids[COUNT - 1], &at[COUNT - 1]), "0 canceled: " DENIED ";");
    for (; ended < COUNT - 1; turns++) {
        assert_true(turns < COUNT);
        ended = 0;
        for (size_t i = 0; i < COUNT - 1; i++)
            ended += peer_stream(&f->peer, ids[i])->body.len > at[i];
        assert_true(turns > 0 || ended < COUNT - 1);
        turn(f);
    }
    for (size_t i = 0; i < COUNT - 1; i++)
        assert_string_equal(said(f, ids[i], &at[i]), "0 canceled: " DENIED ";");
}

static void keep_alive(struct fixture *f, uint32_t stream, int64_t id)
{
    ask_keep_alive(f, stream, id);
    settle(f);
}

static void each_renewal_of_a_stream_is_asked_for(void **state)
{
    struct fixture *f = *state;
    struct pb_lease_grant_request request = {.id = 5, .ttl = 60};
    struct pb_put_request on_lease = {.key = SLICE_LITERAL("c"), .lease = 5};
    begin(f);
    be(f, "anna");
    assert_fine(f, call(f, PB_LEASE_LEASE_GRANT_PATH, &pb_lease_grant_request_table, &request));
    uint32_t stream = peer_open(&f->peer, PB_LEASE_LEASE_KEEP_ALIVE_PATH, SLICE_LITERAL("3.7"));
    keep_alive(f, stream, 5);
    assert_false(peer_stream(&f->peer, stream)->ended);
    be(f, "root");
    assert_fine(f, call(f, PB_KV_PUT_PATH, &pb_put_request_table, &on_lease));
    keep_alive(f, stream, 5); /* a key hangs on it that anna may not write */
    assert_true(peer_stream(&f->peer, stream)->ended);
    assert_int_equal(peer_stream(&f->peer, stream)->code, GRPC_PERMISSION_DENIED);
    be(f, "anna");
    stream = peer_open(&f->peer, PB_LEASE_LEASE_KEEP_ALIVE_PATH, SLICE_LITERAL("3.7"));
    f->peer.now_ns += TTL_NS + 1;
    keep_alive(f, stream, 6);
    assert_refused(f, stream, ST_INVALID_AUTH_TOKEN);
}

static void renewals_before_a_refused_one_are_answered(void **state)
{
    struct fixture *f = *state;
    begin(f);
    be(f, "root");
    for (int64_t id = 5; id <= 6; id++) {
        struct pb_lease_grant_request request = {.id = id, .ttl = 60};
        assert_fine(f, call(f, PB_LEASE_LEASE_GRANT_PATH, &pb_lease_grant_request_table, &request));
    }
    struct pb_put_request on_lease = {.key = SLICE_LITERAL("c"), .lease = 6};
    assert_fine(f, call(f, PB_KV_PUT_PATH, &pb_put_request_table, &on_lease));
    be(f, "anna");
    uint32_t stream = peer_open(&f->peer, PB_LEASE_LEASE_KEEP_ALIVE_PATH, SLICE_LITERAL("3.7"));
    /* The first is on its way while the others come, which then go together. */
    const int64_t ids[] = {5, 5, 99, 6, 5};
    for (size_t i = 0; i < COUNT_OF(ids); i++)
        ask_keep_alive(f, stream, ids[i]);
    settle(f);
    size_t at = 0;
    for (size_t i = 0; i < 3; i++) {
        struct pb_lease_keep_alive_response response;
        assert_true(
            next_message(&f->peer, stream, &at, &pb_lease_keep_alive_response_table, &response));
        assert_int_equal(response.id, ids[i]);
        assert_int_equal(response.ttl, ids[i] == 5 ? 60 : 0);
    }
    struct pb_lease_keep_alive_response none;
    assert_false(next_message(&f->peer, stream, &at, &pb_lease_keep_alive_response_table, &none));
    assert_int_equal(peer_stream(&f->peer, stream)->code, GRPC_PERMISSION_DENIED);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(enabling_needs_a_root_who_is_root),
        TEST(who_cannot_log_in_is_not_told_why),
        cmocka_unit_test(user_who_is_not_there_takes_as_long_as_one_who_is),
        cmocka_unit_test(passwords_that_wait_are_limited),
        cmocka_unit_test(client_that_leaves_while_its_password_is_hashed_leaves_nothing),
        cmocka_unit_test(change_while_somebody_logs_in_is_seen),
        TEST(long_passwords_and_such_with_nul_are_refused),
        TEST(password_can_be_changed_by_its_hash),
        TEST(token_is_found_where_clients_put_it),
        TEST(token_lives_while_it_is_used),
        TEST(status_is_for_everybody_but_who_shows_a_wrong_token),
        TEST(change_ends_the_tokens_it_should),
        cmocka_unit_test(name_of_a_certificate_is_a_user),
        cmocka_unit_test(certificate_of_a_stranger_may_nothing),
        TEST(no_method_is_answered_for_nobody),
        TEST(root_may_call_every_method),
        TEST(rights_of_a_user_are_those_of_its_roles),
        TEST(watch_without_permission_is_refused_in_etcds_words),
        TEST(watch_ends_when_its_permission_goes),
        TEST(watch_of_nobody_ends_when_access_is_controlled),
        TEST(thousands_of_watches_are_asked_again_in_turns),
        TEST(each_renewal_of_a_stream_is_asked_for),
        TEST(renewals_before_a_refused_one_are_answered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
