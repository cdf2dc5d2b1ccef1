# The structs and tables of proto/, made at build time into generated/codec/pb/. Whoever links
# vigil_codec is compiled after them.
find_package(Python3 REQUIRED COMPONENTS Interpreter)

set(proto_names kv auth rpc lock election health raft)
set(generated_dir ${CMAKE_BINARY_DIR}/generated/codec/pb)
list(TRANSFORM proto_names REPLACE "(.+)" "${CMAKE_SOURCE_DIR}/proto/\\1.proto" OUTPUT_VARIABLE protos)
list(TRANSFORM proto_names REPLACE "(.+)" "${generated_dir}/\\1.pb.h" OUTPUT_VARIABLE generated_headers)
list(TRANSFORM proto_names REPLACE "(.+)" "${generated_dir}/\\1.pb.c" OUTPUT_VARIABLE generated_sources)
list(APPEND generated_sources ${generated_dir}/all.pb.c)

add_custom_command(
    OUTPUT ${generated_headers} ${generated_sources}
    COMMAND Python3::Interpreter ${CMAKE_SOURCE_DIR}/tools/pbgen.py ${generated_dir} ${protos}
    DEPENDS ${CMAKE_SOURCE_DIR}/tools/pbgen.py ${protos}
    COMMENT "Making the protobuf tables"
    VERBATIM)
add_custom_target(codec_generated DEPENDS ${generated_headers} ${generated_sources})
target_sources(vigil_codec PRIVATE ${generated_sources} ${generated_headers})
add_dependencies(vigil_codec codec_generated)

# The codec against an independent implementation. Debian's python3-protobuf belongs to the
# system's own python3, which need not be the first on the path.
find_program(VIGIL_SYSTEM_PYTHON python3 PATHS /usr/bin NO_DEFAULT_PATH)
find_program(VIGIL_PROTOC protoc)
add_executable(codec_oracle ${CMAKE_SOURCE_DIR}/tests/codec_oracle.c)
target_link_libraries(codec_oracle PRIVATE vigil_codec)
set_target_properties(codec_oracle PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/unit)
if(VIGIL_SYSTEM_PYTHON AND VIGIL_PROTOC)
    add_test(NAME codec/oracle COMMAND ${VIGIL_SYSTEM_PYTHON} ${CMAKE_SOURCE_DIR}/tests/codec_oracle.py
             $<TARGET_FILE:codec_oracle> ${CMAKE_SOURCE_DIR}/proto)
    set_tests_properties(codec/oracle PROPERTIES TIMEOUT 300)
else()
    message(WARNING "codec/oracle is left out: it needs protobuf-compiler and python3-protobuf")
endif()
set_property(GLOBAL APPEND PROPERTY vigil_tests_of_codec codec_oracle)

add_executable(codec_bench EXCLUDE_FROM_ALL ${CMAKE_SOURCE_DIR}/tests/codec_bench.c)
target_link_libraries(codec_bench PRIVATE vigil_codec)
set_target_properties(codec_bench PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/unit)

# What the fuzzer has found interesting, as an ordinary test.
add_executable(codec_pb_corpus ${CMAKE_SOURCE_DIR}/fuzz/fuzz_codec_pb.c ${CMAKE_SOURCE_DIR}/fuzz/run_corpus.c)
target_link_libraries(codec_pb_corpus PRIVATE vigil_codec)
set_target_properties(codec_pb_corpus PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/unit)
add_test(NAME codec/pb/corpus COMMAND codec_pb_corpus ${CMAKE_SOURCE_DIR}/fuzz/corpus/codec_pb)
set_property(GLOBAL APPEND PROPERTY vigil_tests_of_codec codec_pb_corpus)

add_executable(codec_json_corpus ${CMAKE_SOURCE_DIR}/fuzz/fuzz_codec_json.c ${CMAKE_SOURCE_DIR}/fuzz/run_corpus.c)
target_link_libraries(codec_json_corpus PRIVATE vigil_codec)
set_target_properties(codec_json_corpus PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/unit)
add_test(NAME codec/json/corpus COMMAND codec_json_corpus ${CMAKE_SOURCE_DIR}/fuzz/corpus/codec_json)
set_property(GLOBAL APPEND PROPERTY vigil_tests_of_codec codec_json_corpus)
