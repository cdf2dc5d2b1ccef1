# What the fuzzer has found interesting, as an ordinary test.
add_executable(import_wal_corpus ${CMAKE_SOURCE_DIR}/fuzz/fuzz_import_wal.c ${CMAKE_SOURCE_DIR}/fuzz/run_corpus.c)
target_link_libraries(import_wal_corpus PRIVATE vigil_import)
set_target_properties(import_wal_corpus PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/unit)
add_test(NAME import/wal/corpus COMMAND import_wal_corpus ${CMAKE_SOURCE_DIR}/fuzz/corpus/import_wal)
set_property(GLOBAL APPEND PROPERTY vigil_tests_of_import import_wal_corpus)
