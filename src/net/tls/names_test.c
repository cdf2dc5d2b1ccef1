/* The user in a certificate. */
#include "net/tls/names.h"

#include "wire/http/certificate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

enum { ATTRIBUTES_MAX = 3 };

struct attribute {
    const char *type, *text;
    int bytes;
};
#define ATTRIBUTE(type, text)        \
    {                                \
        type, text, sizeof(text) - 1 \
    }
#define UID "1.3.6.1.4.1.57683.2"

static struct http_certificate *read_subject(const struct attribute *attributes)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *certificate = X509_new();
    X509_NAME *subject = X509_get_subject_name(certificate);
    for (size_t i = 0; i < ATTRIBUTES_MAX && attributes[i].type; i++) {
        ASN1_OBJECT *type = OBJ_txt2obj(attributes[i].type, 0);
        assert_true(X509_NAME_add_entry_by_OBJ(subject, type, MBSTRING_UTF8,
                                               (const unsigned char *)attributes[i].text,
                                               attributes[i].bytes, -1, 0));
        ASN1_OBJECT_free(type);
    }
    assert_true(X509_set_pubkey(certificate, key));
    assert_true(X509_sign(certificate, key, EVP_sha256()) > 0);
    struct http_certificate *read = tls_certificate_read(certificate);
    assert_non_null(read);
    X509_free(certificate);
    EVP_PKEY_free(key);
    return read;
}

static void uid_is_one_text_or_none(void **state)
{
    static const struct {
        struct attribute subject[ATTRIBUTES_MAX];
        const char *groups; /* with commas */
        const char *uid;
        bool is_bad;
    } rows[] = {
        {{ATTRIBUTE("CN", "jane")}, "", "", false},
        {{ATTRIBUTE("O", "a"), ATTRIBUTE("CN", "jane"), ATTRIBUTE("O", "b")}, "a,b,", "", false},
        {{ATTRIBUTE(UID, "u-1"), ATTRIBUTE("CN", "jane"), ATTRIBUTE("O", "a")}, "a,", "u-1", false},
        {{ATTRIBUTE("O", "a"), ATTRIBUTE(UID, "zo\xc3\xab")}, "a,", "zo\xc3\xab", false},
        {{ATTRIBUTE("O", "a"), ATTRIBUTE(UID, "")}, "a,", "", true},
        {{ATTRIBUTE("O", "a"), ATTRIBUTE(UID, "x\0y")}, "a,", "", true},
        {{ATTRIBUTE(UID, "x"), ATTRIBUTE("CN", "jane"), ATTRIBUTE(UID, "x")}, "", "x", true},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct http_certificate *read = read_subject(rows[i].subject);
        assert_memory_equal(read->id, "X509SHA256=", 11);
        assert_int_equal(strlen(read->id), 11 + 64);
        assert_int_equal(read->groups_bytes, strlen(rows[i].groups));
        for (size_t k = 0; k < read->groups_bytes; k++)
            assert_int_equal(read->groups[k] ? read->groups[k] : ',', rows[i].groups[k]);
        assert_int_equal(read->has_bad_uid, rows[i].is_bad);
        assert_true(
            slice_is(slice_of(read->groups + read->groups_bytes, read->uid_bytes), rows[i].uid));
        free(read);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(uid_is_one_text_or_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
