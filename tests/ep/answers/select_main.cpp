// The C++ selector, asked as an application would, and about machines that are only described.
#include <wright_select.hpp>

#include <iostream>

// select choose PACKAGE: lines "VERSION\tEP/DEVICE/VERSION ..." on stdin, a line with the variant for each on stdout.
// select open PACKAGE any|fitting SEAL [EP=LIBRARY ...]: opens, runs on 0.5 everywhere, prints the first answers.
static int choose(const std::string& package) {
  const auto variants = wright::read_selection(package);
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream cells(line);
    wright::machine here;
    std::getline(cells, here.onnxruntime, '\t');
    for (std::string cell; std::getline(cells, cell, '\t');) {
      const auto first = cell.find('/'), second = cell.find('/', first + 1);
      here.devices.push_back({cell.substr(0, first), cell.substr(first + 1, second - first - 1), cell.substr(second + 1)});
    }
    std::string chosen = "-";
    for (auto one = variants.rbegin(); one != variants.rend(); ++one)
      if (!wright::unfit(*one, here)) chosen = one->name;
    std::cout << chosen << "\n";
  }
  return 0;
}

static int open(int count, char** given) {
  Ort::Env env(ORT_LOGGING_LEVEL_ERROR, "select");
  for (int i = 5; i < count; ++i) {
    const std::string word = given[i];
    env.RegisterExecutionProviderLibrary(word.substr(0, word.find('=')).c_str(), word.substr(word.find('=') + 1));
  }
  wright::select_options how;
  how.any_device = std::string(given[3]) == "any";
  how.seal = given[4];
  auto opened = wright::open_session(env, given[2], how);
  std::cout << opened.why();
  Ort::AllocatorWithDefaultOptions memory;
  const auto input = opened.session.GetInputNameAllocated(0, memory), output = opened.session.GetOutputNameAllocated(0, memory);
  auto shape = opened.session.GetInputTypeInfo(0).GetTensorTypeAndShapeInfo().GetShape();
  std::size_t size = 1;
  for (auto& side : shape) size *= static_cast<std::size_t>(side = side < 1 ? 1 : side);
  std::vector<float> half(size, 0.5f);
  const auto cpu = Ort::MemoryInfo::CreateCpu(OrtDeviceAllocator, OrtMemTypeCPU);
  const auto value = Ort::Value::CreateTensor<float>(cpu, half.data(), half.size(), shape.data(), shape.size());
  const char *fed = input.get(), *wanted = output.get();
  const auto answers = opened.session.Run(Ort::RunOptions{}, &fed, &value, 1, &wanted, 1);
  for (int i = 0; i < 4; ++i) std::cout << answers[0].GetTensorData<float>()[i] << (i < 3 ? " " : "\n");
  return 0;
}

int main(int count, char** given) {
  try {
    return std::string(given[1]) == "choose" ? choose(given[2]) : open(count, given);
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
