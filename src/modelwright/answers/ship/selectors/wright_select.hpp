// Opens the variant of this package that fits the machine it runs on. C++17, onnxruntime 1.23 or newer, nothing else.
//
//   Ort::Env env;
//   auto opened = wright::open_session(env, "path/of/package");   // throws wright::package_refused
//   opened.session.Run(...);
//   std::cout << opened.why();
//
// A plugin EP has to be registered first: env.RegisterExecutionProviderLibrary("QNNExecutionProvider", path). `seal` is the
// digest that `wright ship` printed: give it, and nobody can exchange the package. A file that is not what was shipped is
// refused, and then no other variant is tried.
#pragma once

#include <onnxruntime_cxx_api.h>

#include <array>
#include <cctype>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace wright {

struct package_refused : std::runtime_error {
  using std::runtime_error::runtime_error;
};

using words = std::vector<std::pair<std::string, std::string>>;  // in the order in which they stand in the file

struct variant {
  std::string name, ep, device;  // device: cpu, gpu or npu
  words models, files, needs, options, where;
};

struct ep_device {  // empty: not known
  std::string ep, device, version;
};

struct machine {
  std::string onnxruntime;
  std::vector<ep_device> devices;
};

struct opened_variant {
  Ort::Session session;
  variant taken;
  words tried;  // variants before it, each with the reason why it was not taken

  std::string why() const {
    std::string text;
    for (const auto& [name, reason] : tried) text += "not " + name + ": " + reason + "\n";
    return text + "took " + taken.name + "\n";
  }
};

struct select_options {
  std::string component;    // one of several models; empty is the first
  std::string seal;         // empty: not asked for
  bool any_device = false;  // take a vendor's simulator too
  std::function<Ort::SessionOptions()> make_options = [] { return Ort::SessionOptions(); };
};

namespace detail {

class sha256 {
 public:
  void add(const char* data, std::size_t size) {
    length_ += size;
    for (std::size_t i = 0; i < size; ++i) {
      block_[filled_++] = static_cast<std::uint8_t>(data[i]);
      if (filled_ == 64) flush();
    }
  }

  std::string hex() {
    const std::uint64_t bits = length_ * 8;
    const char one = static_cast<char>(0x80), zero = 0;
    add(&one, 1);
    while (filled_ != 56) add(&zero, 1);
    for (int shift = 56; shift >= 0; shift -= 8) block_[filled_++] = static_cast<std::uint8_t>(bits >> shift);
    flush();
    std::string text;
    for (std::uint32_t word : state_)
      for (int shift = 28; shift >= 0; shift -= 4) text += "0123456789abcdef"[(word >> shift) & 15];
    return text;
  }

 private:
  static std::uint32_t turn(std::uint32_t x, int n) { return (x >> n) | (x << (32 - n)); }

  void flush() {
    static const std::uint32_t k[64] = {
        0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be,
        0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa,
        0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85,
        0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3,
        0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f,
        0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};
    std::uint32_t w[64];
    for (int i = 0; i < 16; ++i)
      w[i] = std::uint32_t(block_[4 * i]) << 24 | std::uint32_t(block_[4 * i + 1]) << 16 | std::uint32_t(block_[4 * i + 2]) << 8 | block_[4 * i + 3];
    for (int i = 16; i < 64; ++i)
      w[i] = w[i - 16] + (turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ (w[i - 15] >> 3)) + w[i - 7] +
             (turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ (w[i - 2] >> 10));
    auto [a, b, c, d, e, f, g, h] = state_;
    for (int i = 0; i < 64; ++i) {
      const std::uint32_t t1 = h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g)) + k[i] + w[i];
      const std::uint32_t t2 = (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
      h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
    }
    const std::array<std::uint32_t, 8> more{a, b, c, d, e, f, g, h};
    for (int i = 0; i < 8; ++i) state_[i] += more[i];
    filled_ = 0;
  }

  std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::uint8_t, 64> block_{};
  std::size_t filled_ = 0;
  std::uint64_t length_ = 0;
};

inline std::string digest(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw package_refused(path.u8string() + " cannot be read");
  sha256 found;
  std::vector<char> block(1 << 20);
  while (file.read(block.data(), static_cast<std::streamsize>(block.size())) || file.gcount()) found.add(block.data(), static_cast<std::size_t>(file.gcount()));
  return found.hex();
}

inline std::string value_of(const words& found, const std::string& key, const std::string& otherwise) {
  for (const auto& [name, value] : found)
    if (name == key) return value;
  return otherwise;
}

inline std::vector<long> version(const std::string& text) {  // 1.31.1 is newer than 1.4; what follows a + says nothing
  std::vector<long> found;
  for (std::size_t i = 0; i < text.size() && text[i] != '+';)
    if (std::isdigit(static_cast<unsigned char>(text[i]))) {
      std::size_t used = 0;
      found.push_back(std::stol(text.substr(i), &used));
      i += used;
    } else {
      ++i;
    }
  return found;
}

inline void require_inside(const std::string& name) {
  const std::filesystem::path place(name);
  bool out = place.is_absolute() || name.find_first_of("\\:") != std::string::npos;
  for (const auto& part : place) out = out || part == "..";
  if (out) throw package_refused(name + " leads out of the package");
}

inline std::string kind(OrtHardwareDeviceType type) {
  return type == OrtHardwareDeviceType_NPU ? "npu" : type == OrtHardwareDeviceType_GPU ? "gpu" : "cpu";
}

}  // namespace detail

// The variants, best first.
inline std::vector<variant> read_selection(const std::filesystem::path& package, const std::string& seal = "") {
  const auto path = package / "selection.txt";
  if (!seal.empty() && detail::digest(path) != seal) throw package_refused("selection.txt is not what was shipped");
  std::ifstream file(path, std::ios::binary);
  std::string line;
  if (!std::getline(file, line) || line != "wright-selection\t1") throw package_refused("selection.txt is of another kind than this selector reads");
  std::vector<variant> found;
  while (std::getline(file, line)) {
    if (line.empty()) continue;
    std::vector<std::string> row;
    std::istringstream cells(line);
    for (std::string cell; std::getline(cells, cell, '\t');) row.push_back(cell);
    const bool first = row[0] == "variant";
    if (row.size() != (first ? 4u : 3u) || (!first && found.empty())) throw package_refused("selection.txt cannot be read: " + line);
    if (first) {
      found.push_back({row[1], row[2], row[3], {}, {}, {}, {}, {}});
      continue;
    }
    variant& last = found.back();
    if (row[0] == "model") detail::require_inside(row[2]), last.models.emplace_back(row[1], row[2]);
    if (row[0] == "file") detail::require_inside(row[1]), last.files.emplace_back(row[1], row[2]);
    if (row[0] == "needs") last.needs.emplace_back(row[1], row[2]);
    if (row[0] == "option") last.options.emplace_back(row[1], row[2]);
    if (row[0] == "where") last.where.emplace_back(row[1], row[2]);
  }
  return found;
}

inline machine this_machine(const Ort::Env& env) {
  machine found{Ort::GetVersionString(), {}};
  for (const auto& one : env.GetEpDevices()) {
    const char* version = one.EpMetadata().GetValue("version");
    found.devices.push_back({one.EpName(), detail::kind(one.Device().Type()), version ? version : ""});
  }
  const std::size_t listed = found.devices.size();
  for (const auto& ep : Ort::GetAvailableProviders()) {
    bool known = false;
    for (std::size_t i = 0; i < listed; ++i) known = known || found.devices[i].ep == ep;
    if (!known) found.devices.push_back({ep, "", ""});
  }
  return found;
}

// Why a variant cannot run on a machine; nothing where it may.
inline std::optional<std::string> unfit(const variant& one, const machine& here, bool any_device = false) {
  const std::string least = detail::value_of(one.needs, "onnxruntime", "0");
  if (detail::version(here.onnxruntime) < detail::version(least)) return "it needs onnxruntime " + least + ", this is " + here.onnxruntime;
  bool is_here = false, fits = false, new_enough = false;
  const std::string least_ep = detail::value_of(one.needs, one.ep, "0");
  std::string seen;
  for (const auto& [ep, device, version] : here.devices) {
    if (ep != one.ep) continue;
    is_here = true;
    if (!any_device && !device.empty() && device != one.device) continue;
    if (!fits) seen = version;
    fits = true;
    new_enough = new_enough || version.empty() || detail::version(version) >= detail::version(least_ep);
  }
  if (!is_here) return one.ep + " is not here";
  if (!fits) return one.ep + " has no " + one.device + " here";
  if (!new_enough) return "it needs " + one.ep + " " + least_ep + ", this is " + seen;
  return std::nullopt;
}

// Every file of a variant, by its digest.
inline void check_files(const std::filesystem::path& package, const variant& one) {
  for (const auto& [name, wanted] : one.files)
    if (detail::digest(package / name) != wanted) throw package_refused(name + " is not what was shipped");
}

namespace detail {

// With this EP on one device, named; onnxruntime is not to take another one by itself.
inline Ort::Session open(Ort::Env& env, const std::filesystem::path& path, const variant& one, bool any_device, Ort::SessionOptions settings) {
  std::unordered_map<std::string, std::string> options(one.options.begin(), one.options.end());
  if (one.ep != "CPUExecutionProvider") {
    std::vector<Ort::ConstEpDevice> fitting;
    for (const auto& device : env.GetEpDevices())
      if (one.ep == device.EpName() && (any_device || kind(device.Device().Type()) == one.device) && fitting.empty()) fitting.push_back(device);
    if (!fitting.empty()) {
      settings.AppendExecutionProvider_V2(env, fitting, options);
    } else {  // one that is a part of onnxruntime, and is told its device by a word
      options.insert(one.where.begin(), one.where.end());
      settings.AppendExecutionProvider(one.ep.substr(0, one.ep.rfind("ExecutionProvider")), options);
    }
  }
  return Ort::Session(env, path.c_str(), settings);
}

}  // namespace detail

// The first variant that fits and opens.
inline opened_variant open_session(Ort::Env& env, const std::filesystem::path& package, const select_options& how = {}) {
  const machine here = this_machine(env);
  words tried;
  for (const variant& one : read_selection(package, how.seal)) {
    auto reason = unfit(one, here, how.any_device);
    if (!reason) {
      check_files(package, one);
      const std::string model = how.component.empty() ? one.models.at(0).second : detail::value_of(one.models, how.component, "");
      try {
        return {detail::open(env, package / model, one, how.any_device, how.make_options()), one, tried};
      } catch (const Ort::Exception& error) {
        reason = std::string("it does not open: ") + error.what();
      }
    }
    tried.emplace_back(one.name, *reason);
  }
  std::string text = "no variant runs here";
  for (const auto& [name, reason] : tried) text += "; " + name + ": " + reason;
  throw package_refused(text);
}

}  // namespace wright
