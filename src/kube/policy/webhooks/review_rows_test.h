/*
 * Answers of webhooks, and what kube-apiserver makes of them: printed by VerifyAdmissionResponse
 * and ToStatusErr of k8s.io/apiserver v0.36.3, after its decoder of answers. Not here, because they
 * differ: Go joins what is repeated, and looks into a request that is sent back.
 */
#ifndef VIGIL_KUBE_POLICY_WEBHOOKS_REVIEW_ROWS_TEST_H
#define VIGIL_KUBE_POLICY_WEBHOOKS_REVIEW_ROWS_TEST_H

#include "kube/policy/webhooks/review.h"

#define CALL "failed to call webhook: "
#define INVALID "received invalid webhook response: "
#define NO_PATCH "received undecodable patch in webhook response: "
#define NO_OBJECT(type)                                                              \
    CALL "couldn't get version/kind; json parse error: json: cannot unmarshal " type \
         " into Go value of type struct { APIVersion string "                        \
         "\"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }"
#define FIELD(type, field) CALL "json: cannot unmarshal " type " into Go struct field " field
#define V1(response)                                                                              \
    "{\"apiVersion\":\"admission.k8s.io/v1\",\"kind\":\"AdmissionReview\",\"response\":" response \
    "}"
#define BETA(response)                    \
    "{\"apiVersion\":\"admission.k8s.io/" \
    "v1beta1\",\"kind\":\"AdmissionReview\",\"response\":" response "}"

struct review_row {
    struct slice answer;
    const char *want; /* an error, "allowed" with what else it says, or the Status of a denial */
};

static const struct review_row mutating_rows[] = {
    {SLICE_LITERAL(""), INVALID "webhook response was absent"},
    {SLICE_LITERAL(" "), INVALID "webhook response was absent"},
    {SLICE_LITERAL("{"),
     CALL "couldn't get version/kind; json parse error: unexpected end of JSON input"},
    {SLICE_LITERAL("[]"), NO_OBJECT("array")},
    {SLICE_LITERAL("1"), NO_OBJECT("number")},
    {SLICE_LITERAL("\"x\""), NO_OBJECT("string")},
    {SLICE_LITERAL("null"), INVALID "webhook response was absent"},
    {SLICE_LITERAL("true"), NO_OBJECT("bool")},
    {SLICE_LITERAL("{}"), INVALID "webhook response was absent"},
    {SLICE_LITERAL("{\"response\":null}"), INVALID "webhook response was absent"},
    {SLICE_LITERAL("nonsense"), NO_OBJECT("string")},
    {SLICE_LITERAL("<html></html>"), NO_OBJECT("string")},
    {SLICE_LITERAL("a: b"), INVALID "webhook response was absent"},
    {SLICE_LITERAL("response: ["), CALL "yaml: line 1: did not find expected node content"},
    {SLICE_LITERAL("{\"response\":{}}"), INVALID "expected response.uid=\"u1\", got \"\""},
    {SLICE_LITERAL("{\"kind\":1}"),
     CALL "couldn't get version/kind; json parse error: json: cannot unmarshal number into Go "
          "struct field .kind of type string"},
    {SLICE_LITERAL("{\"apiVersion\":{}}"),
     CALL "couldn't get version/kind; json parse error: json: cannot unmarshal object into Go "
          "struct field .apiVersion of type string"},
    {SLICE_LITERAL("{\"kind\":null}"), INVALID "webhook response was absent"},
    {SLICE_LITERAL("{\"kind\":\"Pod\"}"),
     CALL "no kind \"Pod\" is registered for version \"admission.k8s.io/v1\" in scheme "
          "\"pkg/runtime/scheme.go:111\""},
    {SLICE_LITERAL("{\"kind\":\"Pod\",\"apiVersion\":\"v1\"}"), CALL
     "no kind \"Pod\" is registered for version \"v1\" in scheme \"pkg/runtime/scheme.go:111\""},
    {SLICE_LITERAL(
         "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"message\":\"no\"}"),
     CALL "converting (v1.Status) to (v1.AdmissionReview): unknown conversion"},
    {SLICE_LITERAL("{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Success\"}"),
     CALL "converting (v1.Status) to (v1.AdmissionReview): unknown conversion"},
    {SLICE_LITERAL("{\"kind\":\"Status\",\"apiVersion\":\"admission.k8s.io/v1\"}"),
     CALL "converting (v1.Status) to (v1.AdmissionReview): unknown conversion"},
    {SLICE_LITERAL("{\"kind\":\"ListOptions\",\"apiVersion\":\"admission.k8s.io/v1\"}"),
     CALL "converting (v1.ListOptions) to (v1.AdmissionReview): unknown conversion"},
    {SLICE_LITERAL("{\"kind\":\"WatchEvent\",\"apiVersion\":\"admission.k8s.io/v1\"}"),
     CALL "converting (v1.WatchEvent) to (v1.AdmissionReview): unknown conversion"},
    {SLICE_LITERAL("{\"kind\":\"APIGroup\",\"apiVersion\":\"v1\"}"),
     CALL "converting (v1.APIGroup) to (v1.AdmissionReview): unknown conversion"},
    {SLICE_LITERAL("{\"kind\":\"AdmissionReview\",\"apiVersion\":\"v1\"}"),
     CALL "no kind \"AdmissionReview\" is registered for version \"v1\" in scheme "
          "\"pkg/runtime/scheme.go:111\""},
    {SLICE_LITERAL("{\"kind\":\"AdmissionReview\",\"apiVersion\":\"a/b/c\"}"),
     CALL "unexpected GroupVersion string: a/b/c"},
    {SLICE_LITERAL("{\"kind\":\"AdmissionReview\",\"apiVersion\":\"/v1\"}"),
     CALL "no kind \"AdmissionReview\" is registered for version \"v1\" in scheme "
          "\"pkg/runtime/scheme.go:111\""},
    {SLICE_LITERAL("{\"kind\":\"AdmissionReview\",\"apiVersion\":\"a/\"}"), CALL
     "Object 'apiVersion' is missing in '{\"kind\":\"AdmissionReview\",\"apiVersion\":\"a/\"}'"},
    {SLICE_LITERAL("{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/\"}"),
     INVALID "webhook response was absent"},
    {SLICE_LITERAL("{\"kind\":\"AdmissionReview\",\"apiVersion\":\"/\"}"),
     INVALID "webhook response was absent"},
    {SLICE_LITERAL("{\"apiVersion\":\"admission.k8s.io/v1\"}"),
     INVALID "webhook response was absent"},
    {SLICE_LITERAL("{\"apiVersion\":\"v1\"}"),
     CALL "no kind \"AdmissionReview\" is registered for version \"v1\" in scheme "
          "\"pkg/runtime/scheme.go:111\""},
    {SLICE_LITERAL("{\"apiVersion\":\"admission.k8s.io/v2\",\"kind\":\"AdmissionReview\"}"),
     CALL "no kind \"AdmissionReview\" is registered for version \"admission.k8s.io/v2\" in scheme "
          "\"pkg/runtime/scheme.go:111\""},
    {SLICE_LITERAL(BETA("{\"uid\":\"u1\",\"allowed\":true}")),
     CALL "converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion"},
    {SLICE_LITERAL("{\"Kind\":\"AdmissionReview\",\"APIVersion\":\"admission.k8s.io/"
                   "v1\",\"response\":{\"uid\":\"u1\",\"allowed\":true}}"),
     INVALID
     "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /, Kind="},
    {SLICE_LITERAL("{\"kind\":\"AdmissionReview\",\"response\":{\"uid\":\"u1\",\"allowed\":true}}"),
     INVALID "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /, "
             "Kind=AdmissionReview"},
    {SLICE_LITERAL(
         "{\"apiVersion\":\"admission.k8s.io/v1\",\"response\":{\"uid\":\"u1\",\"allowed\":true}}"),
     INVALID "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got "
             "admission.k8s.io/v1, Kind="},
    {SLICE_LITERAL("{\"response\":{\"uid\":\"u1\",\"allowed\":true}}"), INVALID
     "expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got /, Kind="},
    {SLICE_LITERAL(
         "{\"apiVersion\":\"admission.k8s.io/"
         "v1\",\"kind\":\"AdmissionReview\",\"Response\":{\"uid\":\"u1\",\"allowed\":true}}"),
     INVALID "webhook response was absent"},
    {SLICE_LITERAL(
         "{\"apiVersion\":\"admission.k8s.io/"
         "v1\",\"kind\":\"AdmissionReview\",\"response\":{\"uid\":\"u1\",\"allowed\":true}} x"),
     CALL
     "couldn't get version/kind; json parse error: invalid character 'x' after top-level value"},
    {SLICE_LITERAL(V1("{\"uid\":\"u1\",\"allowed\":true}} {")), CALL
     "couldn't get version/kind; json parse error: invalid character '{' after top-level value"},
    {SLICE_LITERAL("apiVersion: admission.k8s.io/v1\nkind: AdmissionReview\nresponse:\n  uid: u1\n "
                   " allowed: yes\n  warnings: [a, b]\n"),
     "allowed warning a warning b"},
    {SLICE_LITERAL("apiVersion: admission.k8s.io/v1\nkind: AdmissionReview\nresponse:\n  uid: u1\n "
                   " allowed: 'yes'\n"),
     FIELD("string", "AdmissionResponse.response.allowed of type bool")},
    {SLICE_LITERAL("--- {}"), INVALID "webhook response was absent"},
    {SLICE_LITERAL("\357\273\277{}"), INVALID "webhook response was absent"},
    {SLICE_LITERAL("\n\t {\"response\":{}}"), INVALID "expected response.uid=\"u1\", got \"\""},
    {SLICE_LITERAL("\000"), CALL "yaml: control characters are not allowed"},
    {SLICE_LITERAL("{\"a\":1,}"), CALL "couldn't get version/kind; json parse error: invalid "
                                       "character '}' looking for beginning of object key string"},
    {SLICE_LITERAL("{\"kind\":\"AdmissionReview\",\"kind\":\"Pod\"}"),
     CALL "no kind \"Pod\" is registered for version \"admission.k8s.io/v1\" in scheme "
          "\"pkg/runtime/scheme.go:111\""},
    {SLICE_LITERAL("{\"response\": 01}"), CALL "couldn't get version/kind; json parse error: "
                                               "invalid character '1' after object key:value pair"},
    {SLICE_LITERAL("{\"response\":{\"uid\":\"\001\"}}"), CALL
     "couldn't get version/kind; json parse error: invalid character '\\x01' in string literal"},
    {SLICE_LITERAL("{\"kind\":\"AdmissionReview\",\"KIND\":\"Pod\"}"),
     CALL "no kind \"Pod\" is registered for version \"admission.k8s.io/v1\" in scheme "
          "\"pkg/runtime/scheme.go:111\""},
    {SLICE_LITERAL("{\"metadata\":5}"), INVALID "webhook response was absent"},
    {SLICE_LITERAL(V1("5")),
     FIELD("number", "AdmissionReview.response of type v1.AdmissionResponse")},
    {SLICE_LITERAL(V1("\"a\"")),
     FIELD("string", "AdmissionReview.response of type v1.AdmissionResponse")},
    {SLICE_LITERAL(V1("[]")),
     FIELD("array", "AdmissionReview.response of type v1.AdmissionResponse")},
    {SLICE_LITERAL(V1("true")),
     FIELD("bool", "AdmissionReview.response of type v1.AdmissionResponse")},
    {SLICE_LITERAL(V1("{\"uid\":5}")),
     FIELD("number", "AdmissionResponse.response.uid of type types.UID")},
    {SLICE_LITERAL(V1("{\"uid\":\"u1\",\"allowed\":\"true\"}")),
     FIELD("string", "AdmissionResponse.response.allowed of type bool")},
    {SLICE_LITERAL(V1("{\"uid\":\"u1\",\"allowed\":1}")),
     FIELD("number", "AdmissionResponse.response.allowed of type bool")},
    {SLICE_LITERAL(V1("{\"uid\":\"u1\",\"allowed\":null}")),
     "{\"metadata\":{},\"status\":\"Failure\",\"message\":\"DENIED without "
     "explanation\",\"code\":400}"},
    {SLICE_LITERAL(V1("{\"uid\":\"u1\"}")), "{\"metadata\":{},\"status\":\"Failure\",\"message\":"
                                            "\"DENIED without explanation\",\"code\":400}"},
    {SLICE_LITERAL(V1("{\"uid\":\"u2\"}")), INVALID "expected response.uid=\"u1\", got \"u2\""},
    {SLICE_LITERAL(V1("{\"uid\":\"u\\\"2\\u00e9\\u0000\"}")),
     INVALID "expected response.uid=\"u1\", got \"u\\\"2\303\251\\x00\""},
    {SLICE_LITERAL(V1("{\"uid\":null}")), INVALID "expected response.uid=\"u1\", got \"\""},
    {SLICE_LITERAL(V1("{\"uid\":\"u1\",\"allowed\":true,\"patch\":5}")),
     FIELD("number", "AdmissionResponse.response.patch of type []uint8")},
    {SLICE_LITERAL(V1("{\"uid\":\"u1\",\"allowed\":true,\"patch\":\"W10=\"}")),
     INVALID "webhook returned response.patch but not response.patchType"},
    {SLICE_LITERAL(V1("{\"uid\":\"u1\",\"allowed\":true,\"patchType\":\"JSONPatch\"}")),
     INVALID "webhook returned response.patchType but not response.patch"},
    {SLICE_LITERAL(V1("{\"uid\":\"u1\",\"allowed\":true,\"patchType\":\"\"}")),
     INVALID "webhook returned response.patchType but not response.patch"},
    {SLICE_LITERAL(V1("{\"uid\":\"u1\",\"allowed\":true,\"patch\":\"W10=\",\"patchType\":\"\"}")),
     INVALID "webhook returned invalid response.patchType of \"\""},
    {SLICE_LITERAL(
         V1("{\"uid\":\"u1\",\"allowed\":true,\"patch\":\"W10=\",\"patchType\":\"Merge\"}")),
     "allowed Merge []"},
    {SLICE_LITERAL(V1("{\"uid\":\"u1\",\"allowed\":true,\"patch\":\"W10=\",\"patchType\":null}")),
     INVALID "webhook returned response.patch but not response.patchType"},
    {SLICE_LITERAL(
         V1("{\"uid\":\"u1\",\"allowed\":true,\"patch\":\"\",\"patchType\":\"JSONPatch\"}")),
     INVALID "webhook returned response.patchType but not response.patch"},
    {SLICE_LITERAL(V1("{\"uid\":\"u1\",\"allowed\":true,\"patch\":null,\"patchType\":null}")),
     "allowed"},
    {SLICE_LITERAL(
         V1("{\"uid\":\"u1\",\"allowed\":true,\"patch\":\"W10\",\"patchType\":\"JSONPatch\"}")),
     CALL "illegal base64 data at input byte 0"},
    {SLICE_LITERAL(
         V1("{\"uid\":\"u1\",\"allowed\":true,\"patch\":\"W1_0\",\"patchType\":\"JSONPatch\"}")),
     CALL "illegal base64 data at input byte 2"},
    {SLICE_LITERAL(
         V1("{\"uid\":\"u1\",\"allowed\":true,\"patch\":\"W1\\n0=\",\"patchType\":\"JSONPatch\"}")),
     "allowed JSONPatch []"},
    {SLICE_LITERAL(
         V1("{\"uid\":\"u1\",\"allowed\":true,\"patch\":\"W1!0\",\"patchType\":\"JSONPatch\"}")),
     CALL "illegal base64 data at input byte 2"},
    {SLICE_LITERAL(
         V1("{\"uid\":\"u1\",\"allowed\":true,\"patch\":\"W11=\",\"patchType\":\"JSONPatch\"}")),
     "allowed JSONPatch []"},
    {SLICE_LITERAL(
         V1("{\"uid\":\"u1\",\"allowed\":true,\"patch\":[91,93],\"patchType\":\"JSONPatch\"}")),
     "allowed JSONPatch []"},
    {SLICE_LITERAL(
         V1("{\"uid\":\"u1\",\"allowed\":true,\"patch\":\"Ww==\",\"patchType\":\"JSONPatch\"}")),
     NO_PATCH "unexpected end of JSON input"},
    {SLICE_LITERAL(
         V1("{\"uid\":\"u1\",\"allowed\":true,\"patch\":\"e30=\",\"patchType\":\"JSONPatch\"}")),
     NO_PATCH "json: cannot unmarshal object into Go value of type jsonpatch.Patch"},
    {SLICE_LITERAL(
         V1("{\"uid\":\"u1\",\"allowed\":true,\"patch\":\"NQ==\",\"patchType\":\"Merge\"}")),
     NO_PATCH "json: cannot unmarshal number into Go value of type jsonpatch.Patch"},
    {SLICE_LITERAL(V1(
         "{\"uid\":\"u1\",\"allowed\":true,\"patch\":\"W3t9LDFd\",\"patchType\":\"JSONPatch\"}")),
     NO_PATCH "json: cannot unmarshal number into Go value of type jsonpatch.Operation"},
    {SLICE_LITERAL(V1(
         "{\"uid\":\"u1\",\"allowed\":true,\"patch\":\"W10geA==\",\"patchType\":\"JSONPatch\"}")),
     NO_PATCH "invalid character 'x' after top-level value"},
    {SLICE_LITERAL(
         V1("{\"uid\":\"u1\",\"allowed\":true,\"patch\":\"W3t9XQ==\",\"patchType\":\"Merge\"}")),
     "unsupported patch type \"Merge\""},
    {SLICE_LITERAL(V1(
         "{\"uid\":\"u1\",\"allowed\":true,\"patch\":\"W251bGxd\",\"patchType\":\"JSONPatch\"}")),
     "allowed JSONPatch [null]"},
    {SLICE_LITERAL(
         V1("{\"uid\":\"u1\",\"allowed\":true,\"patch\":\"bnVsbA==\",\"patchType\":\"Merge\"}")),
     "allowed Merge null"},
    {SLICE_LITERAL(
         V1("{\"uid\":\"u1\",\"allowed\":true,\"patch\":[1,300],\"patchType\":\"JSONPatch\"}")),
     FIELD("number 300", "AdmissionResponse.response.patch of type uint8")},
    {SLICE_LITERAL(
         V1("{\"uid\":\"u1\",\"allowed\":true,\"patch\":[\"a\"],\"patchType\":\"JSONPatch\"}")),
     FIELD("string", "AdmissionResponse.response.patch of type uint8")},
    {SLICE_LITERAL(
         V1("{\"uid\":\"u1\",\"allowed\":true,\"patch\":{\"a\":1},\"patchType\":\"JSONPatch\"}")),
     FIELD("object", "AdmissionResponse.response.patch of type []uint8")},
    {SLICE_LITERAL(V1("{\"uid\":\"u1\",\"allowed\":true,\"patch\":\"W10=\",\"patchType\":5}")),
     FIELD("number", "AdmissionResponse.response.patchType of type v1.PatchType")},
    {SLICE_LITERAL(V1("{\"uid\":\"u1\",\"allowed\":true,\"warnings\":5}")),
     FIELD("number", "AdmissionResponse.response.warnings of type []string")},
    {SLICE_LITERAL(V1("{\"uid\":\"u1\",\"allowed\":true,\"warnings\":\"a\"}")),
     FIELD("string", "AdmissionResponse.response.warnings of type []string")},
    {SLICE_LITERAL(V1("{\"uid\":\"u1\",\"allowed\":true,\"warnings\":[\"a\",5]}")),
     FIELD("number", "AdmissionResponse.response.warnings of type string")},
    {SLICE_LITERAL(V1("{\"uid\":\"u1\",\"allowed\":true,\"warnings\":[\"a\",null,\"\",\"b\"]}")),
     "allowed warning a warning b"},
    {SLICE_LITERAL(V1("{\"uid\":\"u1\",\"allowed\":true,\"warnings\":{\"a\":1}}")),
     FIELD("object", "AdmissionResponse.response.warnings of type []string")},
    {SLICE_LITERAL(V1("{\"uid\":\"u1\",\"allowed\":true,\"warnings\":null,\"auditAnnotations\":"
                      "null,\"status\":null}")),
     "allowed"},
    {SLICE_LITERAL(
         V1("{\"uid\":\"u1\",\"allowed\":true,\"auditAnnotations\":{\"b\":\"2\",\"a\":\"1\"}}")),
     "allowed annotations"},
    {SLICE_LITERAL(V1("{\"uid\":\"u1\",\"allowed\":true,\"auditAnnotations\":{\"b\":2}}")),
     FIELD("number", "AdmissionResponse.response.auditAnnotations of type string")},
    {SLICE_LITERAL(V1("{\"uid\":\"u1\",\"allowed\":true,\"auditAnnotations\":{\"b\":null}}")),
     "allowed annotations"},
    {SLICE_LITERAL(V1("{\"uid\":\"u1\",\"allowed\":true,\"auditAnnotations\":{}}")), "allowed"},
    {SLICE_LITERAL(V1("{\"uid\":\"u1\",\"allowed\":true,\"auditAnnotations\":[]}")),
     FIELD("array", "AdmissionResponse.response.auditAnnotations of type map[string]string")},
    {SLICE_LITERAL(V1("{\"uid\":\"u1\",\"allowed\":true,\"auditAnnotations\":\"a\"}")),
     FIELD("string", "AdmissionResponse.response.auditAnnotations of type map[string]string")},
    {SLICE_LITERAL(V1("{\"uid\":\"u1\",\"status\":5}")),
     FIELD("number", "AdmissionResponse.response.status of type v1.Status")},
    {SLICE_LITERAL(V1("{\"uid\":\"u1\",\"status\":{}}")),
     "{\"metadata\":{},\"status\":\"Failure\",\"message\":\"DENIED without "
     "explanation\",\"code\":400}"},
    {SLICE_LITERAL(V1("{\"uid\":\"u1\",\"status\":{\"message\":\"no\"}}")),
     "{\"metadata\":{},\"status\":\"Failure\",\"message\":\"DENIED: no\",\"code\":400}"},
    {SLICE_LITERAL(V1("{\"uid\":\"u1\",\"status\":{\"reason\":\"Nope\"}}")),
     "{\"metadata\":{},\"status\":\"Failure\",\"message\":\"DENIED: "
     "Nope\",\"reason\":\"Nope\",\"code\":400}"},
    {SLICE_LITERAL(V1("{\"uid\":\"u1\",\"status\":{\"code\":200,\"message\":\"m\",\"reason\":\"R\","
                      "\"status\":\"Success\"}}")),
     "{\"metadata\":{},\"status\":\"Failure\",\"message\":\"DENIED: "
     "m\",\"reason\":\"R\",\"code\":400}"},
    {SLICE_LITERAL(V1("{\"uid\":\"u1\",\"status\":{\"code\":418,\"message\":\"m\",\"reason\":\"R\","
                      "\"status\":\"Odd\",\"details\":{\"name\":\"n\",\"group\":\"g\",\"kind\":"
                      "\"k\",\"uid\":\"u\",\"causes\":[{\"reason\":\"r\",\"message\":\"m\","
                      "\"field\":\"f\"},{}],\"retryAfterSeconds\":7},\"metadata\":{"
                      "\"resourceVersion\":\"5\",\"continue\":\"c\",\"remainingItemCount\":3,"
                      "\"selfLink\":\"s\"},\"kind\":\"X\",\"apiVersion\":\"y\",\"unknown\":1}}")),
     "{\"metadata\":{\"selfLink\":\"s\",\"resourceVersion\":\"5\",\"continue\":\"c\","
     "\"remainingItemCount\":3},\"status\":\"Odd\",\"message\":\"DENIED: "
     "m\",\"reason\":\"R\",\"details\":{\"name\":\"n\",\"group\":\"g\",\"kind\":\"k\",\"uid\":"
     "\"u\",\"causes\":[{\"reason\":\"r\",\"message\":\"m\",\"field\":\"f\"},{}],"
     "\"retryAfterSeconds\":7},\"code\":418}"},
    {SLICE_LITERAL(V1("{\"uid\":\"u1\",\"status\":{\"code\":\"x\"}}")),
     FIELD("string", "Status.response.status.code of type int32")},
    {SLICE_LITERAL(V1("{\"uid\":\"u1\",\"status\":{\"code\":4.5}}")),
     FIELD("number 4.5", "Status.response.status.code of type int32")},
    {SLICE_LITERAL(V1("{\"uid\":\"u1\",\"status\":{\"code\":403.0}}")),
     FIELD("number 403.0", "Status.response.status.code of type int32")},
    {SLICE_LITERAL(V1("{\"uid\":\"u1\",\"status\":{\"code\":4e2}}")),
     FIELD("number 4e2", "Status.response.status.code of type int32")},
    {SLICE_LITERAL(V1("{\"uid\":\"u1\",\"status\":{\"code\":3000000000}}")),
     FIELD("number 3000000000", "Status.response.status.code of type int32")},
    {SLICE_LITERAL(V1("{\"uid\":\"u1\",\"status\":{\"code\":-1}}")),
     "{\"metadata\":{},\"status\":\"Failure\",\"message\":\"DENIED without "
     "explanation\",\"code\":400}"},
    {SLICE_LITERAL(V1("{\"uid\":\"u1\",\"status\":{\"code\":99999}}")),
     "{\"metadata\":{},\"status\":\"Failure\",\"message\":\"DENIED without "
     "explanation\",\"code\":99999}"},
    {SLICE_LITERAL(V1("{\"uid\":\"u1\",\"status\":{\"message\":5}}")),
     FIELD("number", "Status.response.status.message of type string")},
    {SLICE_LITERAL(V1("{\"uid\":\"u1\",\"status\":{\"details\":5}}")),
     FIELD("number", "Status.response.status.details of type v1.StatusDetails")},
    {SLICE_LITERAL(V1("{\"uid\":\"u1\",\"status\":{\"details\":{\"causes\":5}}}")),
     FIELD("number", "StatusDetails.response.status.details.causes of type []v1.StatusCause")},
    {SLICE_LITERAL(V1("{\"uid\":\"u1\",\"status\":{\"details\":{\"causes\":[5]}}}")),
     FIELD("number", "StatusDetails.response.status.details.causes of type v1.StatusCause")},
    {SLICE_LITERAL(V1("{\"uid\":\"u1\",\"status\":{\"details\":{\"causes\":[{\"reason\":5}]}}}")),
     FIELD("number", "StatusCause.response.status.details.causes.reason of type v1.CauseType")},
    {SLICE_LITERAL(V1("{\"uid\":\"u1\",\"status\":{\"details\":{\"causes\":[null]}}}")),
     "{\"metadata\":{},\"status\":\"Failure\",\"message\":\"DENIED without "
     "explanation\",\"details\":{\"causes\":[{}]},\"code\":400}"},
    {SLICE_LITERAL(V1("{\"uid\":\"u1\",\"status\":{\"details\":{\"causes\":[]}}}")),
     "{\"metadata\":{},\"status\":\"Failure\",\"message\":\"DENIED without "
     "explanation\",\"details\":{},\"code\":400}"},
    {SLICE_LITERAL(V1("{\"uid\":\"u1\",\"status\":{\"details\":{}}}")),
     "{\"metadata\":{},\"status\":\"Failure\",\"message\":\"DENIED without "
     "explanation\",\"details\":{},\"code\":400}"},
    {SLICE_LITERAL(V1("{\"uid\":\"u1\",\"status\":{\"details\":{\"retryAfterSeconds\":\"5\"}}}")),
     FIELD("string", "StatusDetails.response.status.details.retryAfterSeconds of type int32")},
    {SLICE_LITERAL(V1("{\"uid\":\"u1\",\"status\":{\"metadata\":{\"remainingItemCount\":\"5\"}}}")),
     FIELD("string", "ListMeta.response.status.metadata.remainingItemCount of type int64")},
    {SLICE_LITERAL(V1("{\"uid\":\"u1\",\"status\":{\"metadata\":5}}")),
     FIELD("number", "Status.response.status.metadata of type v1.ListMeta")},
    {SLICE_LITERAL(V1("{\"uid\":\"u1\",\"status\":{\"metadata\":null}}")),
     "{\"metadata\":{},\"status\":\"Failure\",\"message\":\"DENIED without "
     "explanation\",\"code\":400}"},
    {SLICE_LITERAL(V1("{\"uid\":\"u1\",\"status\":{\"metadata\":{}}}")),
     "{\"metadata\":{},\"status\":\"Failure\",\"message\":\"DENIED without "
     "explanation\",\"code\":400}"},
    {SLICE_LITERAL(V1("{\"uid\":\"u1\",\"status\":{\"kind\":5}}")),
     FIELD("number", "Status.response.status.TypeMeta.kind of type string")},
    {SLICE_LITERAL(V1("{\"uid\":5,\"allowed\":5,\"patch\":5}")),
     FIELD("number", "AdmissionResponse.response.uid of type types.UID")},
    {SLICE_LITERAL(V1("{\"uid\":\"u1\",\"allowed\":5,\"status\":{\"code\":\"y\"}}")),
     FIELD("number", "AdmissionResponse.response.allowed of type bool")},
    {SLICE_LITERAL(V1("{\"uid\":\"u1\",\"allowed\":true,\"Allowed\":false}")), "allowed"},
    {SLICE_LITERAL(V1("{\"uid\":\"u1\",\"status\":{\"message\":\"a<b>&\"}}")),
     "{\"metadata\":{},\"status\":\"Failure\",\"message\":\"DENIED: a<b>&\",\"code\":400}"},
    {SLICE_LITERAL(V1("{\"uid\":\"u1\",\"allowed\":true,\"zzz\":{\"a\":[1,2,{}]}}")), "allowed"},
    {SLICE_LITERAL(V1("{\"uid\":\"u1\",\"status\":{\"message\":\"\",\"reason\":\"\"}}")),
     "{\"metadata\":{},\"status\":\"Failure\",\"message\":\"DENIED without "
     "explanation\",\"code\":400}"},
    {SLICE_LITERAL(V1("{\"uid\":\"u1\",\"status\":{\"details\":{\"causes\":[{\"type\":\"x\"}],"
                      "\"name\":null}}}")),
     "{\"metadata\":{},\"status\":\"Failure\",\"message\":\"DENIED without "
     "explanation\",\"details\":{\"causes\":[{}]},\"code\":400}"},
    {SLICE_LITERAL(
         V1("{\"uid\":\"u1\",\"status\":{\"details\":{\"retryAfterSeconds\":5000000000}}}")),
     FIELD("number 5000000000",
           "StatusDetails.response.status.details.retryAfterSeconds of type int32")},
    {SLICE_LITERAL(V1("{\"uid\":\"u1\",\"status\":{\"message\":\"\\ud800\"}}")),
     "{\"metadata\":{},\"status\":\"Failure\",\"message\":\"DENIED: \357\277\275\",\"code\":400}"},
    {SLICE_LITERAL(V1("{\"uid\":\"u1\",\"status\":{\"message\":\"\\udc00\\ud800\\udc00x\"}}")),
     "{\"metadata\":{},\"status\":\"Failure\",\"message\":\"DENIED: "
     "\357\277\275\360\220\200\200x\",\"code\":400}"},
    {SLICE_LITERAL(V1(
         "{\"uid\":\"u1\",\"status\":{\"message\":\"\\ud83d\\ude00 \\\\ud800 \\ud800\\u0041\"}}")),
     "{\"metadata\":{},\"status\":\"Failure\",\"message\":\"DENIED: \360\237\230\200 \\\\ud800 "
     "\357\277\275A\",\"code\":400}"},
    {SLICE_LITERAL(V1("{\"uid\":\"u1\",\"status\":{\"message\":\"x\377\303y\342\202z\"}}")),
     "{\"metadata\":{},\"status\":\"Failure\",\"message\":\"DENIED: "
     "x\357\277\275\357\277\275y\357\277\275\357\277\275z\",\"code\":400}"},
};

static const struct review_row validating_rows[] = {
    {SLICE_LITERAL(V1("{\"uid\":\"u1\",\"allowed\":true,\"patch\":\"W10=\"}")),
     INVALID "validating webhook may not return response.patch"},
    {SLICE_LITERAL(V1("{\"uid\":\"u1\",\"allowed\":true,\"patchType\":\"JSONPatch\"}")),
     INVALID "validating webhook may not return response.patchType"},
    {SLICE_LITERAL(V1("{\"uid\":\"u1\",\"allowed\":true,\"patchType\":\"\"}")),
     INVALID "validating webhook may not return response.patchType"},
    {SLICE_LITERAL(V1("{\"uid\":\"u1\",\"allowed\":true,\"patch\":\"\",\"patchType\":null}")),
     "allowed"},
    {SLICE_LITERAL(
         V1("{\"uid\":\"u1\",\"allowed\":true,\"patch\":\"W10=\",\"patchType\":\"JSONPatch\"}")),
     INVALID "validating webhook may not return response.patch"},
};

static const struct review_row beta_mutating_rows[] = {
    {SLICE_LITERAL(BETA("null")), INVALID "webhook response was absent"},
    {SLICE_LITERAL(BETA("{\"allowed\":true}")), "allowed"},
    {SLICE_LITERAL(BETA("{\"uid\":\"other\",\"allowed\":true,\"patch\":\"W10=\"}")),
     "allowed JSONPatch []"},
    {SLICE_LITERAL(BETA("{\"allowed\":true,\"patchType\":\"X\"}")), "allowed"},
    {SLICE_LITERAL(BETA("{\"allowed\":true,\"patch\":\"W10=\",\"patchType\":\"X\"}")),
     "allowed JSONPatch []"},
    {SLICE_LITERAL(BETA("{\"allowed\":\"x\"}")),
     FIELD("string", "AdmissionResponse.response.allowed of type bool")},
    {SLICE_LITERAL("{\"response\":{\"allowed\":true}}"), "allowed"},
    {SLICE_LITERAL(V1("{\"uid\":\"u1\",\"allowed\":true}")),
     CALL "converting (v1.AdmissionReview) to (v1beta1.AdmissionReview): unknown conversion"},
    {SLICE_LITERAL("{\"kind\":\"Pod\"}"),
     CALL "no kind \"Pod\" is registered for version \"admission.k8s.io/v1beta1\" in scheme "
          "\"pkg/runtime/scheme.go:111\""},
    {SLICE_LITERAL("{\"apiVersion\":\"v1\"}"),
     CALL "no kind \"AdmissionReview\" is registered for version \"v1\" in scheme "
          "\"pkg/runtime/scheme.go:111\""},
    {SLICE_LITERAL("{}"), INVALID "webhook response was absent"},
    {SLICE_LITERAL("{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/\"}"),
     INVALID "webhook response was absent"},
};

static const struct review_row beta_validating_rows[] = {
    {SLICE_LITERAL(BETA("{\"allowed\":true,\"patch\":\"W10=\",\"patchType\":\"X\"}")), "allowed"},
};

#endif
