# The structs and tables of proto/, made at build time into generated/codec/pb/. Targets that link
# vigil_codec are compiled after them.
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
vigil_tool(codec_oracle codec ${CMAKE_SOURCE_DIR}/tests/codec_oracle.c)
if(VIGIL_SYSTEM_PYTHON AND VIGIL_PROTOC)
    add_test(NAME codec/oracle COMMAND ${VIGIL_SYSTEM_PYTHON} ${CMAKE_SOURCE_DIR}/tests/codec_oracle.py
             $<TARGET_FILE:codec_oracle> ${CMAKE_SOURCE_DIR}/proto)
    set_tests_properties(codec/oracle PROPERTIES TIMEOUT 300)
else()
    message(WARNING "codec/oracle is left out: it needs protobuf-compiler and python3-protobuf")
endif()
# And against the one that etcd uses.
find_program(VIGIL_GO go HINTS /usr/local/go/bin)
if(VIGIL_GO)
    add_test(NAME codec/etcd COMMAND ${CMAKE_COMMAND} -E env CGO_ENABLED=0 ${VIGIL_GO} -C ${CMAKE_SOURCE_DIR}/tests run ./codec
             $<TARGET_FILE:codec_oracle> 20)
    set_tests_properties(codec/etcd PROPERTIES TIMEOUT 300)
else()
    message(WARNING "codec/etcd is left out: it needs Go")
endif()
set_property(GLOBAL APPEND PROPERTY vigil_tests_of_codec codec_oracle)
vigil_bench(codec)
vigil_corpus(codec pb)
vigil_corpus(codec json)
