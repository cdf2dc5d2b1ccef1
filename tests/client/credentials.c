/* Credentials that change while watches run: tokens expire, users and roles are removed, and
 * certificates are replaced. The connections of new_client can be cut ("drop"). */
#include "inbox.h"

#include <unistd.h>

static vigil_client *client_as(const char *endpoints, const char *user, const char *password)
{
    vigil_options options;
    vigil_client *client;
    default_options(&options);
    options.endpoints = getenv(endpoints);
    options.user = user;
    options.password = password;
    CHECK(vigil_client_new(&options, &client, NULL) == VIGIL_OK);
    return client;
}

static void add_user(vigil_client *client, const char *name)
{
    vigil_permission permission = {VIGIL_PERMISSION_READ_WRITE, vigil_text("shared/"),
                                   vigil_text("shared0")};
    must(vigil_user_add(client, name, "pass"));
    must(vigil_role_add(client, name));
    if (strcmp(name, "root") != 0)
        must(vigil_role_grant(client, name, &permission));
    must(vigil_user_grant_role(client, name, name));
}

/* Three users with the password "pass". Returns a client of root. */
static vigil_client *enable_authentication(void)
{
    vigil_client *client = direct_client();
    add_user(client, "root");
    add_user(client, "anna");
    add_user(client, "bert");
    must(vigil_auth_enable(client));
    vigil_client_free(client);
    return client_as("VIGIL_DIRECT", "root", "pass");
}

static void put_and_take(vigil_client *writer, struct inbox *inbox, const char *value)
{
    put(writer, "shared/k", value);
    inbox_take_value(inbox, value);
}

static void expired_tokens_are_renewed(void)
{
    vigil_client *root = enable_authentication();
    vigil_client *anna = client_as("VIGIL_ENDPOINTS", "anna", "pass");
    struct inbox inbox;
    unsigned seconds = (unsigned)strtoul(getenv("VIGIL_TOKEN_SECONDS"), NULL, 10);
    inbox_open_key(&inbox, anna, "shared/k");
    put_and_take(anna, &inbox, "0");
    sleep(seconds);
    put_and_take(root, &inbox,
                 "1"); /* the watch does not need its token, and root gets a new one */
    ask("drop");       /* the watch resumes with a new token */
    put_and_take(root, &inbox, "2");
    sleep(seconds);
    put_and_take(anna, &inbox, "3");
    inbox_close(&inbox);
    vigil_client_free(anna);
    vigil_client_free(root);
}

/* etcd checks permissions when a watch is created, so it continues until its connection breaks.
 * Vigil ends it at once: permission denied. */
static void take_event_and_end(struct inbox *inbox, const char *value, int code)
{
    struct delivery delivery = inbox_take(inbox);
    if (delivery.what == VIGIL_WATCH_ENDED) {
        CHECK(delivery.error.code == VIGIL_ERROR_PERMISSION_DENIED);
        return;
    }
    CHECK(delivery.what == VIGIL_WATCH_EVENTS && strcmp(delivery.value, value) == 0);
    ask("drop");
    inbox_take_end(inbox, code);
}

static void removed_users_and_roles_end_their_watches(void)
{
    vigil_client *root = enable_authentication();
    vigil_client *anna = client_as("VIGIL_ENDPOINTS", "anna", "pass");
    vigil_client *bert = client_as("VIGIL_ENDPOINTS", "bert", "pass");
    vigil_client *other = client_as("VIGIL_ENDPOINTS", "root", "pass");
    struct inbox revoked, deleted, kept;
    inbox_open_key(&revoked, anna, "shared/k");
    inbox_open_key(&deleted, bert, "shared/k");
    inbox_open_key(&kept, other, "shared/k");
    must(vigil_user_revoke_role(root, "anna", "anna"));
    must(vigil_user_delete(root, "bert"));
    put(root, "shared/k", "1");
    inbox_take_value(&kept, "1");
    vigil_call *call = vigil_get(anna, vigil_text("shared/k"));
    vigil_call_run(call);
    CHECK_CODE(call, VIGIL_ERROR_PERMISSION_DENIED);
    vigil_call_free(call);
    call = vigil_get(bert, vigil_text("shared/k"));
    vigil_call_run(call);
    CHECK_CODE(call, VIGIL_ERROR_UNAUTHENTICATED);
    vigil_call_free(call);
    take_event_and_end(&revoked, "1", VIGIL_ERROR_PERMISSION_DENIED);
    take_event_and_end(&deleted, "1", VIGIL_ERROR_UNAUTHENTICATED);
    put_and_take(root, &kept, "2");
    inbox_close(&revoked);
    inbox_close(&deleted);
    inbox_close(&kept);
    vigil_client_free(anna);
    vigil_client_free(bert);
    vigil_client_free(other);
    vigil_client_free(root);
}

/* After each step a client that had kept its old files could not connect any more. */
static void replaced_certificates_are_used(void)
{
    static const char *const steps[] = {"replace certificates", "trust new certificates only"};
    vigil_options options;
    vigil_client *client;
    struct inbox inbox;
    default_options(&options);
    options.cert_file = getenv("VIGIL_CERT_FILE");
    options.key_file = getenv("VIGIL_KEY_FILE");
    CHECK(vigil_client_new(&options, &client, NULL) == VIGIL_OK);
    inbox_open_key(&inbox, client, "shared/k");
    put_and_take(client, &inbox, "0");
    for (int i = 0; i < 2; i++) {
        char value[32];
        snprintf(value, sizeof(value), "%d", i + 1);
        ask(steps[i]);
        ask("drop");
        must(vigil_get(client, vigil_text("x"))); /* repeated on the new connection, unlike a put */
        put_and_take(client, &inbox, value);
    }
    vigil_client_stats stats;
    vigil_client_get_stats(client, &stats, sizeof(stats));
    CHECK(stats.watch_resumes >= 2);
    inbox_close(&inbox);
    vigil_client_free(client);
}

const struct suite_test credential_tests[] = {
    {"expired_tokens_are_renewed", expired_tokens_are_renewed},
    {"removed_users_and_roles_end_their_watches", removed_users_and_roles_end_their_watches},
    {"replaced_certificates_are_used", replaced_certificates_are_used},
    {NULL, NULL},
};
