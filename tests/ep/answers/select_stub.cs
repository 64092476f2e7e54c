// The edge of Microsoft.ML.OnnxRuntime that the C# selector touches, with the signatures of its public source.
using System;
using System.Collections.Generic;

namespace Microsoft.ML.OnnxRuntime
{
    public class OnnxRuntimeException : Exception { public OnnxRuntimeException(string message) : base(message) { } }
    public enum OrtHardwareDeviceType { CPU, GPU, NPU }
    public class OrtHardwareDevice { public OrtHardwareDeviceType Type { get; set; } }
    public class OrtKeyValuePairs
    {
        public IReadOnlyDictionary<string, string> Entries { get; set; }
    }
    public class OrtEpDevice
    {
        public string EpName { get; set; }
        public OrtKeyValuePairs EpMetadata { get; set; }
        public OrtHardwareDevice HardwareDevice { get; set; }
    }
    public sealed class OrtEnv
    {
        private static readonly OrtEnv One = new OrtEnv();
        public static OrtEnv Instance() => One;
        public string GetVersionString() => "1.31.1";
        public string[] GetAvailableProviders() => new[] { "CPUExecutionProvider" };
        public IReadOnlyList<OrtEpDevice> GetEpDevices() => new OrtEpDevice[0];
    }
    public class SessionOptions
    {
        public void AppendExecutionProvider(string providerName, Dictionary<string, string> providerOptions = null) { }
        public void AppendExecutionProvider(OrtEnv env, IReadOnlyList<OrtEpDevice> epDevices, IReadOnlyDictionary<string, string> epOptions) { }
    }
    public class InferenceSession : IDisposable
    {
        public InferenceSession(string modelPath, SessionOptions options)
        {
            if (!System.IO.File.Exists(modelPath)) throw new OnnxRuntimeException("no such file");
        }
        public void Dispose() { }
    }
}
