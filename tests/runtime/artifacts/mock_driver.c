// A GPU driver for machines without a GPU: it takes modules and launches, runs nothing, and writes
// what it was asked for as lines of JSON to the file named by MOCK_DRIVER_LOG. Built twice, as
// libcuda.so.1 and as libamdhip64.so. Who wants to run what is launched gives it two functions.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  void* module;
  char symbol[256];
  int dynamic_shared;
} Function;

typedef struct {
  void* module;
  const char* symbol;
  unsigned grid[3];
  unsigned threads, shared;
  void* stream;
  const void* parameters;
  size_t size;
} Launch;

// From an image to a number for its module, 0 if it is refused; for a launch 0 if it went well.
static size_t (*on_load)(const void*);
static int (*on_launch)(const Launch*);

void mock_driver_listen(size_t (*loads)(const void*), int (*launches)(const Launch*)) {
  on_load = loads;
  on_launch = launches;
}

static void write_line(const char* line) {
  const char* path = getenv("MOCK_DRIVER_LOG");
  FILE* log = path ? fopen(path, "a") : NULL;
  if (!log) return;
  fprintf(log, "%s\n", line);
  fclose(log);
}

static int load(void** module, const char* image) {
  int known = !memcmp(image, "\177ELF", 4) || strstr(image, ".version");
  if (!known) return 200;  // an invalid image
  *module = on_load ? (void*)on_load(image) : (void*)image;
  if (!*module) return 200;
  write_line("{\"op\": \"load\"}");
  return 0;
}

static int find(void** function, void* module, const char* symbol) {
  if (!strcmp(symbol, "missing")) return 500;  // not found
  Function* found = calloc(1, sizeof *found);
  found->module = module;
  snprintf(found->symbol, sizeof found->symbol, "%s", symbol);
  *function = found;
  return 0;
}

static int set_attribute(Function* function, int attribute, int value) {
  if (attribute == 8) function->dynamic_shared = value;
  return value > 232448 ? 1 : 0;
}

static int launch(Function* function, unsigned x, unsigned y, unsigned z, unsigned threads,
                  unsigned shared, void* stream, void** extra, void* end) {
  if (!strcmp(function->symbol, "stuck")) return 1;
  if (shared > 49152 && function->dynamic_shared < (int)shared) return 1;
  if (extra[0] != (void*)1 || extra[2] != (void*)2 || extra[4] != end) return 1;
  size_t size = *(size_t*)extra[3];
  if (on_launch) {
    Launch made = {function->module, function->symbol, {x, y, z}, threads, shared,
                   stream,           extra[1],         size};
    return on_launch(&made);
  }
  char line[8192];
  int at = snprintf(line, sizeof line,
                    "{\"op\": \"launch\", \"symbol\": \"%s\", \"grid\": [%u, %u, %u], "
                    "\"threads\": %u, \"shared\": %u, \"stream\": %lu, \"parameters\": \"",
                    function->symbol, x, y, z, threads, shared, (unsigned long)stream);
  for (size_t i = 0; i < size; i++)
    at += snprintf(line + at, sizeof line - at, "%02x", ((unsigned char*)extra[1])[i]);
  snprintf(line + at, sizeof line - at, "\"}");
  write_line(line);
  return 0;
}

int cuModuleLoadData(void** module, const char* image) { return load(module, image); }
int cuModuleGetFunction(void** function, void* module, const char* symbol) {
  return find(function, module, symbol);
}
int cuFuncSetAttribute(Function* function, int attribute, int value) {
  return set_attribute(function, attribute, value);
}
int cuLaunchKernel(Function* function, unsigned x, unsigned y, unsigned z, unsigned threads,
                   unsigned by, unsigned bz, unsigned shared, void* stream, void** values,
                   void** extra) {
  return launch(function, x, y, z, threads, shared, stream, extra, (void*)0);
}
int cuGetErrorName(int error, const char** text) {
  *text = error == 500 ? "CUDA_ERROR_NOT_FOUND" : error == 200 ? "CUDA_ERROR_INVALID_IMAGE"
                                                               : "CUDA_ERROR_INVALID_VALUE";
  return 0;
}
int cuGetErrorString(int error, const char** text) {
  *text = "as told by the mock driver";
  return 0;
}

int cuDriverGetVersion(int* version) {
  *version = 13000;
  return 0;
}

int hipDriverGetVersion(int* version) {
  *version = 70051831;
  return 0;
}
int hipModuleLoadData(void** module, const char* image) { return load(module, image); }
int hipModuleGetFunction(void** function, void* module, const char* symbol) {
  return find(function, module, symbol);
}
int hipFuncSetAttribute(Function* function, int attribute, int value) {
  return set_attribute(function, attribute, value);
}
int hipModuleLaunchKernel(Function* function, unsigned x, unsigned y, unsigned z, unsigned threads,
                          unsigned by, unsigned bz, unsigned shared, void* stream, void** values,
                          void** extra) {
  return launch(function, x, y, z, threads, shared, stream, extra, (void*)3);
}
const char* hipGetErrorName(int error) {
  return error == 500   ? "hipErrorNotFound"
         : error == 200 ? "hipErrorInvalidImage"
                        : "hipErrorInvalidValue";
}
const char* hipGetErrorString(int error) { return "as told by the mock driver"; }
