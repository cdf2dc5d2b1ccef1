# Included by vigil_layer(kube): the program that is compared with Kubernetes' own code (tests/kube_oracle.py).

add_executable(kube_oracle ${CMAKE_SOURCE_DIR}/tests/kube_oracle.c)
target_link_libraries(kube_oracle PRIVATE vigil_kube)
set_target_properties(kube_oracle PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/unit)
set_property(GLOBAL APPEND PROPERTY vigil_tests_of_kube kube_oracle)
find_package(Python3 REQUIRED COMPONENTS Interpreter)
add_test(NAME kube/oracle COMMAND Python3::Interpreter ${CMAKE_SOURCE_DIR}/tests/kube_oracle.py $<TARGET_FILE:kube_oracle>)
set_tests_properties(kube/oracle PROPERTIES TIMEOUT 300)

# What the fuzzer has found interesting, as an ordinary test.
add_executable(kube_schema_corpus ${CMAKE_SOURCE_DIR}/fuzz/fuzz_kube_schema.c ${CMAKE_SOURCE_DIR}/fuzz/run_corpus.c)
target_link_libraries(kube_schema_corpus PRIVATE vigil_kube)
set_target_properties(kube_schema_corpus PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/unit)
add_test(NAME kube/schema/corpus COMMAND kube_schema_corpus ${CMAKE_SOURCE_DIR}/fuzz/corpus/kube_schema)
set_property(GLOBAL APPEND PROPERTY vigil_tests_of_kube kube_schema_corpus)

add_executable(kube_custom_corpus ${CMAKE_SOURCE_DIR}/fuzz/fuzz_kube_custom.c ${CMAKE_SOURCE_DIR}/fuzz/run_corpus.c)
target_link_libraries(kube_custom_corpus PRIVATE vigil_kube)
set_target_properties(kube_custom_corpus PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/unit)
add_test(NAME kube/custom/corpus COMMAND kube_custom_corpus ${CMAKE_SOURCE_DIR}/fuzz/corpus/kube_custom)
set_property(GLOBAL APPEND PROPERTY vigil_tests_of_kube kube_custom_corpus)

add_executable(kube_apply_corpus ${CMAKE_SOURCE_DIR}/fuzz/fuzz_kube_apply.c ${CMAKE_SOURCE_DIR}/fuzz/run_corpus.c)
target_link_libraries(kube_apply_corpus PRIVATE vigil_kube)
set_target_properties(kube_apply_corpus PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/unit)
add_test(NAME kube/apply/corpus COMMAND kube_apply_corpus ${CMAKE_SOURCE_DIR}/fuzz/corpus/kube_apply)
set_property(GLOBAL APPEND PROPERTY vigil_tests_of_kube kube_apply_corpus)
